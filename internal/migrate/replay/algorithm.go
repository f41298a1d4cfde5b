package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/window"
)

// Algorithm is the limiter that decides a trace's requests, each of which it knows from the rows before it alone.
type Algorithm uint8

// The algorithms, by the commands whose arguments are their columns:
const (
	Funnel        Algorithm = iota // CL.THROTTLE
	TokenBucket                    // CL.TOKENBUCKET
	FixedWindow                    // CL.FIXEDWINDOW
	SlidingWindow                  // CL.SLIDINGWINDOW
	ApproxWindow                   // CL.SLIDINGWINDOW with APPROX
	Bucket                         // CL.BUCKET: a negative quantity adds units
)

// Algorithms are the names of the algorithms.
func Algorithms() []string {
	return []string{"funnel", "tokenbucket", "fixedwindow", "slidingwindow", "approxwindow", "bucket"}
}

func (a Algorithm) String() string { return Algorithms()[a] }

// ParseAlgorithm returns the algorithm of a name.
func ParseAlgorithm(name string) (Algorithm, error) {
	i := slices.Index(Algorithms(), name)
	if i < 0 {
		return 0, errors.New("want one of " + strings.Join(Algorithms(), ", "))
	}
	return Algorithm(i), nil
}

// CountsDenied reports whether there is a reading of the algorithm that counts denied requests, too.
func (a Algorithm) CountsDenied() bool { return a.isWindow() }

func (a Algorithm) isWindow() bool {
	return a == FixedWindow || a == SlidingWindow || a == ApproxWindow
}

// maxLimits is how many columns a limit has at most.
const maxLimits = 3

// namesLimit reports whether there is a limit beside those that a trace has itself.
func (o *Options) namesLimit() bool {
	for _, n := range []*int64{o.MaxBurst, o.Count, o.Capacity, o.RefillCount, o.MaxCount, o.Period} {
		if n != nil {
			return true
		}
	}
	return o.Algorithm != Funnel
}

// fixed returns what decides every request of a trace that has no limits of its own.
func (o *Options) fixed() (limiter.Rule, error) {
	var limit [maxLimits]int64
	for i, n := range o.limits() {
		if n.fallback == nil {
			return limiter.Rule{}, fmt.Errorf("%s is missing: give %s", n.name, n.flag)
		}
		limit[i] = *n.fallback
	}
	return o.rule(limit)
}

// limits are the columns of the algorithm's limit, in the order of its command's arguments.
func (o *Options) limits() []number {
	capacity := number{"capacity", "--capacity", -1, o.Capacity}
	period := number{"period", "--period", -1, o.Period}
	switch o.Algorithm {
	case TokenBucket:
		return []number{capacity, {"refill_count", "--refill-count", -1, o.RefillCount}, period}
	case FixedWindow, SlidingWindow, ApproxWindow:
		return []number{{"max_count", "--max-count", -1, o.MaxCount}, period}
	case Bucket:
		return []number{capacity}
	default:
		return []number{{"max_burst", "--max-burst", -1, o.MaxBurst}, {"count", "--count", -1, o.Count}, period}
	}
}

// rule returns what decides a request, by the values of the columns of limits.
func (o *Options) rule(limit [maxLimits]int64) (r limiter.Rule, err error) {
	r.Unit = funnel.Seconds
	if o.CountDenied {
		r.Flags = limiter.CountDenied
	}
	switch {
	case o.Milliseconds:
		r.Unit = funnel.Milliseconds
	case o.Algorithm.isWindow():
		r.Unit = funnel.WholeSeconds
	}
	switch o.Algorithm {
	case TokenBucket:
		r.Funnel, err = funnel.NewLimitIn(r.Unit, funnel.Capacity, limit[0], limit[1], limit[2])
	case FixedWindow:
		r.Kind = limiter.FixedWindow
		r.Window, err = window.NewLimit(r.Unit, limit[0], limit[1])
	case SlidingWindow:
		r.Kind = limiter.SlidingWindow
		r.Window, err = window.NewExactLimit(r.Unit, limit[0], limit[1])
	case ApproxWindow:
		r.Kind = limiter.ApproxWindow
		r.Window, err = window.NewLimit(r.Unit, limit[0], limit[1])
	case Bucket:
		r.Kind = limiter.Bucket
		r.Bucket, err = bucket.NewLimit(limit[0])
	default:
		r.Funnel, err = funnel.NewLimitIn(r.Unit, o.Reading, limit[0], limit[1], limit[2])
	}
	return r, o.Algorithm.named(err)
}

// named has an error speak of columns and flags, as it would speak of the arguments of a command.
func (a Algorithm) named(err error) error {
	var names *strings.Replacer
	switch {
	case err != nil && a == TokenBucket:
		names = strings.NewReplacer("max_burst", "capacity", "count", "refill_count", "funnel", "bucket")
	case err != nil && a == SlidingWindow:
		names = strings.NewReplacer("add APPROX", "use --algorithm approxwindow")
	default:
		return err
	}
	return errors.New(names.Replace(err.Error()))
}

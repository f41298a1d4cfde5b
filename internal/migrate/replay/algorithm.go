package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Algorithm is a limiter whose decisions follow from the preceding rows alone.
type Algorithm uint8

// The funnel's algorithms have the columns of CL.THROTTLE and CL.TOKENBUCKET. Those of other kinds follow;
// negative quantities fill a bucket.
const (
	Funnel Algorithm = iota
	TokenBucket
)

// siblings returns the kinds behind TokenBucket.
func siblings() (kinds []limiter.Kind) {
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if kind.Row().Short != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Algorithms returns the names of all algorithms.
func Algorithms() []string {
	names := []string{"funnel", "tokenbucket"}
	for _, kind := range siblings() {
		names = append(names, kind.Row().Short)
	}
	return names
}

func (a Algorithm) String() string { return Algorithms()[a] }

// ParseAlgorithm returns an algorithm by name.
func ParseAlgorithm(name string) (Algorithm, error) {
	i := slices.Index(Algorithms(), name)
	if i < 0 {
		return 0, errors.New("want one of " + strings.Join(Algorithms(), ", "))
	}
	return Algorithm(i), nil
}

func (a Algorithm) kind() limiter.Kind {
	if a <= TokenBucket {
		return limiter.Funnel
	}
	return siblings()[a-TokenBucket-1]
}

// CountsDenied reports whether the algorithm can count denied requests.
func (a Algorithm) CountsDenied() bool { return a.kind().Row().CountsDenied }

// namesLimit reports whether flags set a limit.
func (o *Options) namesLimit() bool {
	for _, n := range []*int64{o.MaxBurst, o.Count, o.Capacity, o.RefillCount, o.MaxCount, o.Period} {
		if n != nil {
			return true
		}
	}
	return o.Algorithm != Funnel
}

// fixed returns the limit that flags set.
func (o *Options) fixed() (r limiter.Rule, err error) {
	s := o.spec()
	for i, n := range o.limits() {
		if n.fallback == nil {
			return limiter.Rule{}, fmt.Errorf("%s is missing: give %s", n.name, n.flag)
		}
		s.Numbers[i] = *n.fallback
	}
	err = s.Build(&r)
	return r, o.Algorithm.named(err)
}

// limits returns the limit's columns in the order of its command's arguments.
func (o *Options) limits() []number {
	row := o.Algorithm.kind().Row()
	names := row.Arguments()
	if o.Algorithm == TokenBucket {
		names = []string{"capacity", "refill_count", "period"}
	}
	columns := make([]number, len(names))
	for i, name := range names {
		columns[i] = number{name, "--" + strings.ReplaceAll(name, "_", "-"), -1, o.limit(name)}
	}
	return columns
}

// limit returns a column's default, or nil.
func (o *Options) limit(column string) *int64 {
	return map[string]*int64{
		"max_burst": o.MaxBurst, "count": o.Count, "capacity": o.Capacity, "refill_count": o.RefillCount,
		"max_count": o.MaxCount, "period": o.Period,
	}[column]
}

// spec returns the limit without its numbers.
func (o *Options) spec() limiter.Spec {
	s := limiter.Spec{Kind: o.Algorithm.kind(), Reading: o.Reading}
	s.Unit = s.Kind.Row().Unit
	if o.Milliseconds {
		s.Unit = funnel.Milliseconds
	}
	if o.CountDenied {
		s.Flags = limiter.CountDenied
	}
	if o.Algorithm == TokenBucket {
		s.Reading = funnel.Capacity
	}
	return s
}

// named rewrites an error about a command's arguments to columns and flags.
func (a Algorithm) named(err error) error {
	var names *strings.Replacer
	switch {
	case err != nil && a == TokenBucket:
		names = strings.NewReplacer("max_burst", "capacity", "count", "refill_count", "funnel", "bucket")
	case err != nil && a.kind() == limiter.SlidingWindow:
		names = strings.NewReplacer("add APPROX", "use --algorithm approxwindow")
	default:
		return err
	}
	return errors.New(names.Replace(err.Error()))
}

package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Algorithm is the limiter that decides a trace's requests, each of which it knows from the rows before it alone.
type Algorithm uint8

// The algorithms of funnels, whose columns are the arguments of CL.THROTTLE and CL.TOKENBUCKET. Those of the other kinds that are
// decided by arguments follow. A bucket is filled by negative quantities.
const (
	Funnel Algorithm = iota
	TokenBucket
)

// siblings returns the kinds of the algorithms behind TokenBucket.
func siblings() (kinds []limiter.Kind) {
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if kind.Row().Short != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Algorithms are the names of the algorithms.
func Algorithms() []string {
	names := []string{"funnel", "tokenbucket"}
	for _, kind := range siblings() {
		names = append(names, kind.Row().Short)
	}
	return names
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

// kind returns the kind of limiter that the algorithm is.
func (a Algorithm) kind() limiter.Kind {
	if a <= TokenBucket {
		return limiter.Funnel
	}
	return siblings()[a-TokenBucket-1]
}

// CountsDenied reports whether there is a reading of the algorithm that counts denied requests, too.
func (a Algorithm) CountsDenied() bool { return a.kind().Row().CountsDenied }

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

// limits are the columns of the algorithm's limit, in the order of its command's arguments.
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

// limit returns the value of a column in all rows that do not have it, or nil.
func (o *Options) limit(column string) *int64 {
	return map[string]*int64{
		"max_burst": o.MaxBurst, "count": o.Count, "capacity": o.Capacity, "refill_count": o.RefillCount,
		"max_count": o.MaxCount, "period": o.Period,
	}[column]
}

// spec returns the algorithm's limit, without its numbers.
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

// named has an error speak of columns and flags, as it would speak of the arguments of a command.
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

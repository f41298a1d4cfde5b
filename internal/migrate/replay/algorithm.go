package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Algorithm is a limiter whose decisions follow from the preceding rows alone; "" is the funnel.
type Algorithm string

// Algorithms besides those of Algorithms' other kinds. Their columns are the arguments of CL.THROTTLE and
// CL.TOKENBUCKET; negative quantities fill a bucket. CL.QUOTA's windows are columns of words.
const (
	Funnel      Algorithm = "funnel"
	TokenBucket Algorithm = "tokenbucket"
	Quota       Algorithm = "quota"
)

// Algorithms returns the names of all algorithms.
func Algorithms() []string {
	names := []string{string(Funnel), string(TokenBucket)}
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if short := kind.Row().Short; short != "" {
			names = append(names, short)
		}
	}
	return append(names, string(Quota))
}

func (a Algorithm) kind() limiter.Kind {
	if a == Quota {
		return limiter.Quota
	}
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if short := kind.Row().Short; short != "" && short == string(a) {
			return kind
		}
	}
	return limiter.Funnel
}

// CountsDenied reports whether the algorithm can count denied requests.
func (a Algorithm) CountsDenied() bool { return a.kind().Row().CountsDenied }

// Debits reports whether the algorithm can charge units beyond its limit.
func (a Algorithm) Debits() bool {
	kind := a.kind()
	return kind == limiter.Funnel || kind.Row().Debits // CL.DEBIT is a funnel's
}

// namesLimit reports whether flags set a limit.
func (o *Options) namesLimit() bool {
	numbers := []*int64{o.MaxBurst, o.Count, o.Capacity, o.RefillCount, o.MaxCount, o.Period}
	return slices.ContainsFunc(numbers, func(n *int64) bool { return n != nil }) ||
		o.Debit || o.Algorithm == TokenBucket || o.Algorithm.kind() != limiter.Funnel
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
	if s.Kind == limiter.Quota {
		if o.Every == "" {
			return limiter.Rule{}, errors.New("every is missing: give --every")
		}
		if s.Calendar, err = newWindows(o).calendar(nil); err != nil {
			return limiter.Rule{}, err
		}
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

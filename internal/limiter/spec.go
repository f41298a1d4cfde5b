package limiter

import "cellserver/internal/funnel"

// Spec is a limit as given in a command, a form or a trace.
type Spec struct {
	Kind    Kind
	Flags   Flags
	Unit    funnel.Unit    // of the period and the results
	Reading funnel.Reading // of a funnel's first number
	Numbers Numbers        // in the order of the kind's arguments
}

// Build sets r to the limit's rule. It returns the arithmetic's errors, or ErrWrongType for a kind without
// arguments; r has no limit then.
func (s *Spec) Build(r *Rule) (err error) {
	*r = Rule{Kind: s.Kind, Flags: s.Flags, Unit: s.Unit}
	if s.Kind == Funnel {
		r.Funnel, err = funnel.NewLimitIn(s.Unit, s.Reading, s.Numbers[0], s.Numbers[1], s.Numbers[2])
		return err
	}
	r.Packed, err = s.Kind.of().build(*s)
	return err
}

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

// Terms is a compact rule: its kind and its numbers as arguments. The zero Terms are none.
type Terms struct {
	Kind    Kind
	Unit    funnel.Unit
	Numbers Numbers // a funnel's first one is its capacity
}

func (r *Rule) Terms() Terms {
	if r.Kind == Funnel {
		return funnelTerms(r.Unit, r.Funnel)
	}
	return Terms{Kind: r.Kind, Unit: r.Unit, Numbers: r.Kind.of().numbers(*r)}
}

func funnelTerms(unit funnel.Unit, l funnel.Limit) Terms {
	return Terms{Kind: Funnel, Unit: unit, Numbers: funnelNumbers(unit, l)}
}

// Terms returns the terms of an operation's request.
func (o *Operation) Terms() Terms {
	switch o.Verb {
	case Reserve, Wait:
		return funnelTerms(o.Unit, o.Funnel)
	case Acquire:
		return Terms{Kind: Concurrency, Unit: o.Unit, Numbers: Numbers{o.Max}}
	default:
		return Terms{}
	}
}

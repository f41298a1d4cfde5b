package limiter

import "cellserver/internal/funnel"

// Spec is a limit as somebody gives it: by a command's arguments, a form's fields, a trace's columns.
type Spec struct {
	Kind    Kind
	Flags   Flags
	Unit    funnel.Unit    // of the period, and of the results
	Reading funnel.Reading // of a funnel's first number
	Numbers Numbers        // in the order of the kind's arguments
}

// Build makes r the rule of the limit. The errors are those of the kind's arithmetic, and of a kind without arguments
// ErrWrongType; with one r is that of no limit.
func (s *Spec) Build(r *Rule) (err error) {
	*r = Rule{Kind: s.Kind, Flags: s.Flags, Unit: s.Unit}
	if s.Kind == Funnel {
		r.Funnel, err = funnel.NewLimitIn(s.Unit, s.Reading, s.Numbers[0], s.Numbers[1], s.Numbers[2])
		return err
	}
	r.Packed, err = s.Kind.of().build(*s)
	return err
}

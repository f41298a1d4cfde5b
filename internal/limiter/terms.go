package limiter

import "cellserver/internal/funnel"

// Terms are a rule in few bytes, for who keeps many: its kind, and its arguments as a command has them. The zero Terms are none.
type Terms struct {
	Kind    Kind
	Unit    funnel.Unit
	Numbers Numbers // of which the first of a funnel is its capacity
}

// Terms returns the rule's terms.
func (r *Rule) Terms() Terms {
	if r.Kind == Funnel {
		return funnelTerms(r.Unit, r.Funnel)
	}
	return Terms{Kind: r.Kind, Unit: r.Unit, Numbers: r.Kind.of().numbers(*r)}
}

func funnelTerms(unit funnel.Unit, l funnel.Limit) Terms {
	return Terms{Kind: Funnel, Unit: unit, Numbers: funnelNumbers(unit, l)}
}

// Terms returns the terms by which an operation requests something.
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

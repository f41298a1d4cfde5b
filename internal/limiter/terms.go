package limiter

import "cellserver/internal/funnel"

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

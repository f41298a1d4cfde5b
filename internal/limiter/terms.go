package limiter

import "cellserver/internal/funnel"

// Terms are a rule in few bytes, for who keeps many: its kind, and its arguments as a command has them. The zero Terms are none.
type Terms struct {
	Kind   Kind
	Unit   funnel.Unit
	Most   int64 // the capacity of a funnel or a bucket, max_count of a window, or how many may have a place at once
	Count  int64 // of a funnel, that leak in a period
	Period int64 // of a funnel or a window, in the unit
}

// Terms returns the rule's terms.
func (r *Rule) Terms() Terms {
	switch r.Kind {
	case Funnel:
		return funnelTerms(r.Unit, r.Funnel)
	case FixedWindow, SlidingWindow, ApproxWindow:
		return Terms{Kind: r.Kind, Unit: r.Unit, Most: r.Window.MaxCount(), Period: int64(r.Window.PeriodNs() / r.Unit.Ns())}
	case Bucket:
		return Terms{Kind: r.Kind, Most: r.Bucket.Capacity()}
	default:
		return Terms{Kind: r.Kind}
	}
}

func funnelTerms(unit funnel.Unit, l funnel.Limit) Terms {
	count, period := l.Arguments(unit)
	return Terms{Kind: Funnel, Unit: unit, Most: l.Capacity(), Count: count, Period: period}
}

// Terms returns the terms by which an operation requests something.
func (o *Operation) Terms() Terms {
	switch o.Verb {
	case Reserve, Wait:
		return funnelTerms(o.Unit, o.Funnel)
	case Acquire:
		return Terms{Kind: Concurrency, Unit: o.Unit, Most: o.Max}
	default:
		return Terms{}
	}
}

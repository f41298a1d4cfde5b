package limiter

import "cellserver/internal/funnel"

func (o *Operation) Traits() Traits {
	switch o.Verb {
	case Look:
		return Traits{Kind: Funnel, TAT: Raises, KeepsPayload: true}
	case Wait:
		as := OfFunnel(o.Funnel)
		return as.Traits(o.Quantity)
	case GiveBack: // perhaps units charged before those taken ahead
		return Traits{Kind: Funnel, TAT: Replaces}
	case Commit: // likewise
		return Traits{Kind: Reserving, TAT: Replaces}
	case Reserve:
		as := OfFunnel(o.Funnel)
		return Traits{Kind: Reserving, TAT: Raises, IntervalNs: as.IntervalNs()}
	case Acquire, Release, Renew, Holders:
		return Traits{Kind: Concurrency, TAT: Raises}
	case Add, Fill, Level, Expire:
		return Traits{Kind: Bucket, TAT: Raises}
	}
	return Traits{}
}

func (o *Operation) Outcome() Outcome {
	out := Outcome{Count: o.Count}
	switch o.Verb {
	case Wait:
		out.Kind, out.Quantity = Funnel, o.Quantity
	case Reserve:
		out.Kind, out.Quantity = Reserving, o.Quantity
	case Acquire:
		out.Kind, out.Quantity = Concurrency, 1
	default:
		return out
	}
	out.Requests, out.Limited = true, o.Result.Limited
	return out
}

func (o *Operation) Copy() (c Step, take func()) {
	as := *o
	return &as, func() { *o = as }
}

// DoBehind implements Timed: AtNs is by the caller's clock.
func (o *Operation) DoBehind(s *State, nowNs, byNs int64) (changed bool, err error) {
	atNs := o.AtNs
	if atNs != NeverNs {
		o.AtNs = funnel.Shift(atNs, -byNs)
	}
	changed, err = o.Do(s, nowNs)
	if o.Verb == Look {
		atNs = funnel.Shift(o.AtNs, byNs)
	}
	o.AtNs = atNs
	return changed, err
}

package limiter

import "cellserver/internal/funnel"

// Traits implements Step.
func (o *Operation) Traits() Traits {
	switch o.Verb {
	case Look:
		return Traits{Kind: Funnel, TAT: Raises, KeepsPayload: true}
	case Wait:
		as := OfFunnel(o.Funnel)
		return as.Traits(o.Quantity)
	case GiveBack: // perhaps units from before those that were taken ahead
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

// Outcome implements Step.
func (o *Operation) Outcome() Outcome {
	switch o.Verb {
	case Wait:
		return Outcome{Requests: true, Kind: Funnel, Quantity: o.Quantity, Limited: o.Result.Limited, Count: o.Count}
	case Reserve:
		return Outcome{Requests: true, Kind: Reserving, Quantity: o.Quantity, Limited: o.Result.Limited, Count: o.Count}
	case Acquire:
		return Outcome{Requests: true, Kind: Concurrency, Quantity: 1, Limited: o.Result.Limited, Count: o.Count}
	default:
		return Outcome{Count: o.Count}
	}
}

// Copy implements Step.
func (o *Operation) Copy() (c Step, take func()) {
	as := *o
	return &as, func() { *o = as }
}

// DoBehind implements Timed: AtNs is a time of the caller's clock.
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

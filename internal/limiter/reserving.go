package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/reserve"
)

// ledger returns the ledger of a funnel, in which all is settled that has expired, and whether there was any. The error is
// ErrWrongType.
func (s *State) ledger(nowNs int64) (l reserve.Ledger, settled bool, err error) {
	switch {
	case s.ExpiresNs <= nowNs:
		return reserve.New(s.Payload, nowNs), false, nil
	case s.Kind == Funnel:
		return reserve.New(s.Payload, s.ExpiresNs), false, nil
	case s.Kind != Reserving:
		return l, false, ErrWrongType
	}
	l, ok := reserve.Open(s.Payload)
	if !ok {
		return reserve.New(s.Payload, nowNs), true, nil
	}
	settled = l.Settle(nowNs)
	return l, settled, nil
}

// keep gives the state what the ledger says: that of a plain funnel, where nothing is reserved any more.
func (s *State) keep(l *reserve.Ledger) {
	s.Kind = Funnel
	if l.Len() > 0 {
		s.Kind = Reserving
	}
	s.Payload, s.ExpiresNs = l.Close()
}

// decideReserving decides a request on a funnel with reservations. What has expired by now is another state, even if the request
// is limited.
func (r *Rule) decideReserving(s *State, nowNs, quantity int64) (result funnel.Result, changed bool, err error) {
	l, changed, err := s.ledger(nowNs)
	if err != nil {
		return result, false, err
	}
	tatNs, result := r.Funnel.ThrottleIn(r.Unit, l.TAT(), nowNs, quantity)
	if tatNs != l.TAT() {
		l.SetTAT(nowNs, tatNs)
		changed = true
	}
	if changed {
		s.keep(&l)
	}
	return result, changed, nil
}

// doFunnel does what is done to a funnel. What has expired by now is another state, whatever the operation does.
func (o *Operation) doFunnel(s *State, nowNs int64) (changed bool, err error) {
	l, settled, err := s.ledger(nowNs)
	if err != nil {
		return false, err
	}
	switch o.Verb {
	case Reserve:
		changed, err = o.reserve(&l, nowNs)
	case Commit:
		changed = l.Commit(nowNs, o.ID, o.Quantity)
		o.Count = oneIf(changed)
	case Wait:
		changed = o.wait(&l, nowNs)
	default:
		tatNs := funnel.GiveBack(l.TAT(), nowNs, o.DebitNs)
		if changed = tatNs < l.TAT(); changed {
			l.SetTAT(nowNs, tatNs)
		}
	}
	if changed = changed || settled; changed {
		s.keep(&l)
	}
	return changed, err
}

func (o *Operation) wait(l *reserve.Ledger, nowNs int64) (changed bool) {
	var tatNs int64
	tatNs, o.WaitNs, o.Result = o.Funnel.WaitIn(o.Unit, l.TAT(), nowNs, o.Quantity, o.TTLNs)
	o.DebitNs = funnel.Since(max(l.TAT(), nowNs), tatNs)
	if changed = tatNs != l.TAT(); changed {
		l.SetTAT(nowNs, tatNs)
	}
	return changed
}

func (o *Operation) reserve(l *reserve.Ledger, nowNs int64) (done bool, err error) {
	tatNs, r := o.Funnel.ThrottleIn(o.Unit, l.TAT(), nowNs, max(o.Quantity, 0))
	o.Result = r
	if r.Limited || o.Quantity <= 0 {
		return false, nil
	}
	if l.Len() >= reserve.MaxOpen {
		o.Result = funnel.Result{}
		return false, ErrTooManyOpen
	}
	l.Reserve(nowNs, tatNs, o.ID, o.TTLNs, o.Quantity, o.Funnel.IntervalNs())
	return true, nil
}

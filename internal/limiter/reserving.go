package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
)

// ledger returns the settled ledger of a funnel about to change.
func (s *State) ledger(nowNs int64) reserve.Ledger {
	if s.ExpiresNs <= nowNs {
		return reserve.New(s.Payload, nowNs)
	}
	if s.Kind == Funnel {
		return reserve.New(s.Payload, s.ExpiresNs)
	}
	l, ok := reserve.Open(s.Payload)
	if !ok {
		return reserve.New(s.Payload, nowNs)
	}
	l.Settle(nowNs)
	return l
}

// keep stores a ledger in the state, as a plain funnel without reservations.
func (s *State) keep(l *reserve.Ledger) {
	s.Kind = Funnel
	if l.Len() > 0 {
		s.Kind = Reserving
	}
	s.Payload, s.ExpiresNs = l.Close()
}

func (s *State) setTAT(nowNs, tatNs int64) {
	l := s.ledger(nowNs)
	l.SetTAT(nowNs, tatNs)
	s.keep(&l)
}

func (r *Rule) decideReserving(s *State, nowNs, quantity int64) (result funnel.Result, changed bool, err error) {
	beforeNs, err := s.TAT(nowNs)
	if err != nil {
		return result, false, err
	}
	tatNs, result := r.decideFunnel(beforeNs, nowNs, quantity, r.Flags)
	if changed = tatNs != beforeNs; changed {
		s.setTAT(nowNs, tatNs)
	}
	return result, changed, nil
}

func (o *Operation) doFunnel(s *State, nowNs int64) (changed bool, err error) {
	beforeNs, err := s.TAT(nowNs)
	if err != nil {
		return false, err
	}
	var tatNs int64
	switch o.Verb {
	case Reserve:
		return o.reserve(s, beforeNs, nowNs)
	case Commit:
		if o.Count = oneIf(o.commit(s, nowNs)); o.Count == 1 {
			return true, nil
		}
		if !o.Late || !reserve.Due(o.ID, nowNs) {
			return false, nil
		}
		o.Count = committedLate
		tatNs, o.Result = o.Funnel.DebitIn(o.Unit, beforeNs, nowNs, o.Quantity)
	case Wait:
		tatNs, o.WaitNs, o.Result = o.Funnel.WaitIn(o.Unit, beforeNs, nowNs, o.Quantity, o.TTLNs)
		o.DebitNs = funnel.Since(beforeNs, tatNs)
	default:
		tatNs = funnel.GiveBack(beforeNs, nowNs, o.DebitNs)
	}
	if changed = tatNs != beforeNs; changed {
		s.setTAT(nowNs, tatNs)
	}
	return changed, nil
}

func (o *Operation) reserve(s *State, beforeNs, nowNs int64) (done bool, err error) {
	tatNs, r := o.Funnel.ThrottleIn(o.Unit, beforeNs, nowNs, max(o.Quantity, 0))
	o.Result = r
	if r.Limited || o.Quantity <= 0 {
		return false, nil
	}
	l := s.ledger(nowNs)
	if l.Len() >= reserve.MaxOpen { // none has expired
		o.Result = funnel.Result{}
		return false, ErrTooManyOpen
	}
	ttlNs := o.TTLNs
	if o.Dated {
		endNs := reserve.EndNs(nowNs, ttlNs)
		ttlNs = int64(funnel.Since(nowNs, endNs))
		if !reserve.IsDated(o.ID) { // once: a store that repeats the step keeps the ID
			o.ID = reserve.DatedID(endNs, o.ID)
		}
		o.ID = l.FreeID(o.ID)
	}
	l.Reserve(nowNs, tatNs, o.ID, ttlNs, o.Quantity, o.Funnel.IntervalNs())
	s.keep(&l)
	return true, nil
}

// committedLate is the Count of a Commit that debits, as the reservation has expired.
const committedLate = 2

func (o *Operation) commit(s *State, nowNs int64) (done bool) {
	if s.Kind != Reserving || s.ExpiresNs <= nowNs {
		return false
	}
	if l, ok := reserve.Open(s.Payload); !ok || !l.Has(nowNs, o.ID) {
		return false
	}
	l := s.ledger(nowNs)
	l.Commit(nowNs, o.ID, o.Quantity)
	s.keep(&l)
	return true
}

package limiter

import (
	"cmp"
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/hold"
)

func (f *FindHold) Do(s *State, nowNs int64) (changed bool, err error) {
	f.State, f.Call, f.LeftNs = NoHold, HoldCall{}, 0
	if s.ExpiresNs <= nowNs {
		return false, nil
	}
	if s.Kind != Named {
		return false, ErrWrongType
	}
	l := holdsOf(EndedHolds(s, nowNs))
	of, ok := l.Find(f.ID)
	if !ok {
		return false, nil
	}
	f.State, f.Call, f.LeftNs = OpenHold, HoldCall{of.Pairs, of.All}, int64(funnel.Since(nowNs, of.EndNs))
	if of.Overdue {
		f.State = OverdueHold
	}
	return false, nil
}

func (f *FindHold) Traits() Traits { return Traits{Kind: Named, TAT: Raises, KeepsPayload: true} }

func (f *FindHold) MakesKey() bool { return false }

func (f *FindHold) Copy() (c Step, take func()) {
	as := *f
	return &as, func() { *f = as }
}

// findIn takes a live state apart and finds a hold of some pairs.
func findIn(s *State, nowNs int64, id HoldID, pairs uint32) (h split, of hold.Found, ok bool, err error) {
	if s.Kind != Named {
		return h, of, false, ErrWrongType
	}
	h = splitOf(s, nowNs)
	if of, ok = h.holds.Find(id); ok && of.Pairs != pairs {
		ok, err = false, ErrOtherPairs
	}
	return h, of, ok, err
}

func (q *Settle) Do(s *State, nowNs int64) (changed bool, err error) {
	q.State, q.Held, q.Debited, q.Spent, q.Result = NoHold, 0, 0, 0, funnel.Result{}
	n := q.Rule.named()
	if s.ExpiresNs <= nowNs || n != nil && n.adopts(s) {
		return false, nil
	}
	h, of, ok, err := findIn(s, nowNs, q.ID, q.Pairs)
	if errors.Is(err, ErrWrongType) {
		return false, err
	}
	defer func() {
		if h.close(s, changed); changed {
			s.release()
		}
	}()
	if !ok {
		return false, err
	}
	q.State, q.Held = OpenHold, of.Units
	charged := of.Units
	if of.Overdue {
		if q.State = OverdueHold; !of.Charge {
			charged = 0
		}
	}
	used := max(q.Used, 0)
	h.holds.Settle(of, nowNs, max(charged-used, 0), h.giveBack)
	beganNs := cmp.Or(of.BeganNs, nowNs)
	s.Notes.Spend(beganNs, -max(charged-used, 0))
	q.Spent = min(used, charged)
	h.bound(nowNs)
	if used > charged && n != nil && n.Constant == ByRules {
		if n.alone {
			h.reprice(n)
		}
		q.Debited, q.Spent = used-charged, used
		s.Notes.Spend(beganNs, q.Debited)
		var few [fewMarks]mark
		marks := h.mark(few[:0])
		if n.decideBase(&h.base, nowNs, q.Debited, Debit, q.Rule.Unit, &q.Result) {
			h.follow(marks, n, nowNs)
		}
	}
	return true, nil
}

func (q *Settle) Traits() Traits { return Traits{Kind: Named, TAT: Replaces, Joined: true} }

func (q *Settle) MakesKey() bool { return false }

// Outcome counts a debit.
func (q *Settle) Outcome() Outcome {
	out := Outcome{Kind: Named, Count: int64(q.State)}
	if q.Debited > 0 {
		out.Requests, out.Quantity = true, q.Debited
		out.Limited, out.Cut = q.Result.Limited, q.Result.Marks&funnel.Cut != 0
	}
	return out
}

func (q *Settle) Copy() (c Step, take func()) {
	as := *q
	return &as, func() { *q = as }
}

func (q *Extend) Do(s *State, nowNs int64) (changed bool, err error) {
	if q.Open = false; s.ExpiresNs <= nowNs {
		return false, nil
	}
	h, of, ok, err := findIn(s, nowNs, q.ID, q.Pairs)
	if errors.Is(err, ErrWrongType) {
		return false, err
	}
	defer func() { h.close(s, changed) }()
	if !ok || of.Overdue {
		return false, err
	}
	q.Open = true
	h.holds.Extend(of, funnel.After(nowNs, uint64(max(q.TTLNs, 0))))
	return true, nil
}

func (q *Extend) Traits() Traits { return Traits{Kind: Named, TAT: Replaces, Joined: true} }

func (q *Extend) MakesKey() bool { return false }

func (q *Extend) Outcome() Outcome { return Outcome{Kind: Named, Count: oneIf(q.Open)} }

func (q *Extend) Copy() (c Step, take func()) {
	as := *q
	return &as, func() { *q = as }
}

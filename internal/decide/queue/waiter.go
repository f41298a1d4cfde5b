package queue

import (
	"sync/atomic"

	"cellserver/internal/funnel"
)

// Outcome is what has become of a Waiter.
type Outcome uint32

// The outcomes:
const (
	Waiting   Outcome = iota
	Allowed           // its turn has come
	TimedOut          // somebody has ended its time
	Unblocked         // somebody has ended its time, and wants that to be an error
	Cancelled         // it has gone
	Ended             // the Room has
)

// WaiterBytes is what a Waiter costs at most, who is the only one that waits for a key.
const WaiterBytes = 512

// Waiter is who waits for a key's turn.
type Waiter struct {
	line     *line  // nil of who waits alone
	alone    *alone // nil of who stands in a line
	who      Waker  // nil if it does not wait any more
	limit    funnel.Limit
	quantity int64
	debitNs  int64
	turnNs   int64  // see line
	place    uint64 // among those who came for the key
	outcome  atomic.Uint32
	unit     funnel.Unit
}

func (w *Waiter) toleranceNs() int64 { return int64(w.limit.ToleranceNs()) }

// Outcome returns what has become of the Waiter.
func (w *Waiter) Outcome() Outcome { return Outcome(w.outcome.Load()) }

// Leave gives back what was debited for who still waits, wakes it and those who can be answered by that, and reports whether
// it did wait. why is TimedOut, Unblocked or Cancelled.
func (w *Waiter) Leave(why Outcome) (left bool) {
	if w.alone != nil {
		return w.leaveAlone(why)
	}
	l := w.line
	nowNs := l.room.now()
	l.part.do(func() (due []Waker) {
		if w.Outcome() == Waiting {
			_, due = l.lookLocked(nowNs) // or it could give back what the funnel does not hold any more
		}
		if left = w.Outcome() == Waiting; left {
			due = append(due, l.giveUpLocked(w, nowNs, why)...)
		}
		return due
	})
	return left
}

// leaveLocked returns who is to be woken.
func (w *Waiter) leaveLocked(why Outcome) (who Waker) {
	who, w.who = w.who, nil
	w.outcome.Store(uint32(why))
	w.line.room.waiting.Add(-1)
	return who
}

// Result is what a Waiter is answered that waits no more: what the funnel has at a time, and that the request is allowed,
// or limited.
func (w *Waiter) Result(nowNs int64) (r funnel.Result) {
	tatNs := w.tatNs(nowNs)
	if w.Outcome() == Allowed {
		_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, 0)
		r.Limited, r.RetryAfter = false, -1
		return r
	}
	_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, w.quantity)
	if !r.Limited { // there is room only since it was given back
		_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, 0)
		r.Limited, r.RetryAfter = true, 0
	}
	return r
}

// tatNs is when the funnel will be empty.
func (w *Waiter) tatNs(nowNs int64) (tatNs int64) {
	if w.alone != nil {
		return w.tatAlone()
	}
	tatNs, _ = w.line.tatNs(nowNs)
	return tatNs
}

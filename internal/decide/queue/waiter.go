package queue

import (
	"sync/atomic"

	"cellserver/internal/funnel"
)

// Outcome is the end of a Waiter's waiting.
type Outcome uint32

const (
	Waiting   Outcome = iota
	Allowed           // its turn has come
	TimedOut          // its time was ended
	Unblocked         // its time was ended by an error
	Cancelled         // it left
	Ended             // the Queue ended
)

// WaiterBytes is the largest memory of a key's only Waiter.
const WaiterBytes = 512

type Waiter struct {
	line     *line   // nil outside a line
	remote   *remote // nil in a line
	waker    Waker   // nil once it has stopped waiting
	limit    funnel.Limit
	quantity int64
	debitNs  int64
	turnNs   int64  // see line
	place    uint64 // among the key's arrivals
	outcome  atomic.Uint32
	unit     funnel.Unit
}

func (w *Waiter) toleranceNs() int64 { return int64(w.limit.ToleranceNs()) }

func (w *Waiter) Outcome() Outcome { return Outcome(w.outcome.Load()) }

// Leave returns the waiter's charge, wakes it and waiters that become due, and reports whether it was
// waiting. why is TimedOut, Unblocked or Cancelled.
func (w *Waiter) Leave(why Outcome) (left bool) {
	if w.remote != nil {
		return w.leaveRemote(why)
	}
	l := w.line
	nowNs := l.queue.now()
	l.part.do(func() (due []Waker) {
		if w.Outcome() == Waiting {
			_, due = l.lookLocked(nowNs) // avoids returning what has drained already
		}
		if left = w.Outcome() == Waiting; left {
			due = append(due, l.giveUpLocked(w, nowNs, why)...)
		}
		return due
	})
	return left
}

func (w *Waiter) leaveLocked(why Outcome) (waker Waker) {
	waker, w.waker = w.waker, nil
	w.outcome.Store(uint32(why))
	w.line.queue.waiting.Add(-1)
	return waker
}

// Result returns the answer to a Waiter that has stopped waiting: the funnel's figures at nowNs, allowed or
// limited.
func (w *Waiter) Result(nowNs int64) (r funnel.Result) {
	tatNs := w.tatNs(nowNs)
	if w.Outcome() == Allowed {
		_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, 0)
		r.Limited, r.RetryAfter = false, -1
		return r
	}
	_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, w.quantity)
	if !r.Limited { // because its charge was returned
		_, r = w.limit.ThrottleIn(w.unit, tatNs, nowNs, 0)
		r.Limited, r.RetryAfter = true, 0
	}
	return r
}

func (w *Waiter) tatNs(nowNs int64) (tatNs int64) {
	if w.remote != nil {
		return w.tatRemote()
	}
	tatNs, _ = w.line.tatNs(nowNs)
	return tatNs
}

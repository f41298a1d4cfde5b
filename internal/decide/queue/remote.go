package queue

import (
	"maps"
	"slices"
	"time"

	"cellserver/internal/limiter"
)

// remote is the part of a Waiter outside any line, for a funnel on another machine, which does not report other
// waiters: the turn never moves, and only the caller can return the charge.
type remote struct {
	queue    *Queue
	giveBack func(then func()) // must not wait
	timer    *time.Timer       // guarded by Queue.remoteMu
}

// EnterRemote waits for an operation Wait already applied at nowNs. If the Waiter leaves early, giveBack is
// called once, from any goroutine, and calls then when it is done.
func (q *Queue) EnterRemote(nowNs int64, o *limiter.Operation, waker Waker, giveBack func(then func())) *Waiter {
	w := &Waiter{
		waker: waker, limit: o.Funnel, unit: o.Unit, quantity: o.Quantity, debitNs: int64(o.DebitNs), turnNs: nowNs + o.WaitNs,
		remote: &remote{queue: q, giveBack: giveBack},
	}
	left := time.Duration(w.turnNs - q.now())
	q.remoteMu.Lock()
	ended := q.remoteEnded
	if !ended {
		q.remote[w] = struct{}{}
		w.remote.timer = time.AfterFunc(left, func() { w.leaveRemote(Allowed) })
	}
	q.remoteMu.Unlock()
	if ended {
		w.leaveRemote(Ended)
	}
	return w
}

// leaveRemote is Leave, or the arrival of the turn.
func (w *Waiter) leaveRemote(why Outcome) (left bool) {
	if !w.outcome.CompareAndSwap(uint32(Waiting), uint32(why)) {
		return false
	}
	r := w.remote
	r.queue.remoteMu.Lock()
	delete(r.queue.remote, w)
	if r.timer != nil {
		r.timer.Stop()
	}
	r.queue.remoteMu.Unlock()
	if why == Allowed {
		w.waker.Wake()
	} else {
		r.giveBack(w.waker.Wake)
	}
	return true
}

// tatRemote returns the funnel's TAT by the state at its charge, with or without it.
func (w *Waiter) tatRemote() (tatNs int64) {
	tatNs = w.turnNs + w.toleranceNs()
	if w.Outcome() != Allowed {
		tatNs -= w.debitNs
	}
	return tatNs
}

// endRemote ends all waiters outside lines, also later ones.
func (q *Queue) endRemote() {
	q.remoteMu.Lock()
	q.remoteEnded = true
	all := slices.Collect(maps.Keys(q.remote))
	q.remoteMu.Unlock()
	for _, w := range all {
		w.leaveRemote(Ended)
	}
}

package queue

import (
	"time"

	"cellserver/internal/limiter"
)

// alone is the part of a Waiter outside any line, for a funnel on another machine that does not report other
// waiters: its turn never moves, and only its caller can return its charge.
type alone struct {
	room     *Room
	giveBack func(then func()) // must not wait
	timer    *time.Timer       // guarded by Room.aloneMu
}

// EnterAlone waits for an operation Wait already applied at nowNs. If the Waiter leaves early, giveBack is
// called once, from any goroutine, and calls then when it is done.
func (r *Room) EnterAlone(nowNs int64, o *limiter.Operation, who Waker, giveBack func(then func())) *Waiter {
	w := &Waiter{
		who: who, limit: o.Funnel, unit: o.Unit, quantity: o.Quantity, debitNs: int64(o.DebitNs), turnNs: nowNs + o.WaitNs,
		alone: &alone{room: r, giveBack: giveBack},
	}
	in := time.Duration(w.turnNs - r.now())
	r.aloneMu.Lock()
	ended := r.aloneEnded
	if !ended {
		r.alone[w] = struct{}{}
		w.alone.timer = time.AfterFunc(in, func() { w.leaveAlone(Allowed) })
	}
	r.aloneMu.Unlock()
	if ended {
		w.leaveAlone(Ended)
	}
	return w
}

// leaveAlone is Leave, or the arrival of the turn.
func (w *Waiter) leaveAlone(why Outcome) (left bool) {
	if !w.outcome.CompareAndSwap(uint32(Waiting), uint32(why)) {
		return false
	}
	a := w.alone
	a.room.aloneMu.Lock()
	delete(a.room.alone, w)
	if a.timer != nil {
		a.timer.Stop()
	}
	a.room.aloneMu.Unlock()
	if why == Allowed {
		w.who.Wake()
	} else {
		a.giveBack(w.who.Wake)
	}
	return true
}

// tatAlone returns the funnel's TAT by the state at its charge, with or without it.
func (w *Waiter) tatAlone() (tatNs int64) {
	tatNs = w.turnNs + w.toleranceNs()
	if w.Outcome() != Allowed {
		tatNs -= w.debitNs
	}
	return tatNs
}

// endAlone lets all leave that wait alone, now and later.
func (r *Room) endAlone() {
	r.aloneMu.Lock()
	r.aloneEnded = true
	all := make([]*Waiter, 0, len(r.alone))
	for w := range r.alone {
		all = append(all, w)
	}
	r.aloneMu.Unlock()
	for _, w := range all {
		w.leaveAlone(Ended)
	}
}

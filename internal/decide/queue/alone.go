package queue

import (
	"time"

	"cellserver/internal/limiter"
)

// alone is what a Waiter has that stands in no line, for its funnel is on another machine: nobody there tells when others give
// up, or come. So its turn stays when it was to come, and what was debited for it is given back by whoever knows how.
type alone struct {
	room     *Room
	giveBack func(then func()) // must not wait
	timer    *time.Timer       // the room's aloneMu guards it
}

// EnterAlone has somebody wait whose operation Wait was done at a time, and whose turn is still to come. giveBack is called, once
// and from any goroutine, if it leaves before, and has to call then when that is done.
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

// leaveAlone is Leave, and what has come when its turn has.
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

// tatAlone is when the funnel would be empty by what is known of it: what was there when it was debited, with or without that.
func (w *Waiter) tatAlone() (tatNs int64) {
	tatNs = w.turnNs + w.toleranceNs()
	if w.Outcome() != Allowed {
		tatNs -= w.debitNs
	}
	return tatNs
}

// endAlone has all leave who wait alone, now and from now on.
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

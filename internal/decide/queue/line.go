package queue

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// lookEvery is the interval of looks at an awaited funnel: evicted keys, expired reservations and
// suspensions, which stop timers, are not reported.
const lookEvery = time.Second

// line is the queue of one key, under its part's lock.
//
// Its times exclude the charges of earlier waiters. The first one's turn is its time plus all charges
// answered since the line began. The charges of leavers are in neither.
type line struct {
	queue      *Queue
	part       *part
	key        store.Key
	waiters    []*Waiter // in order of arrival, including some leavers
	gone       int       // number of leavers
	arrivals   uint64    // number of arrivals
	liveNs     int64     // charges of those still waiting
	answeredNs int64     // charges of those answered; sums are modulo 2^64
	timer      *time.Timer

	// tolerances of the waiters.
	tolerances minima
	// looks are funnel levels found, less the charges of those waiting then, which bound their waiting.
	looks minima
}

func (q *Queue) openLocked(p *part, key store.Key) *line {
	l := &line{queue: q, part: p, key: store.Key{DB: key.DB, Name: bytes.Clone(key.Name)}}
	p.lines[name{key.DB, string(key.Name)}] = l
	l.timer = time.AfterFunc(math.MaxInt64, l.timeHasCome) // set under the lock
	return l
}

func (l *line) timeHasCome() {
	nowNs := l.queue.now()
	l.part.do(func() (due []Waker) {
		if !l.empty() { // else it is closed
			_, due = l.lookLocked(nowNs)
		}
		return due
	})
}

func (l *line) empty() bool { return len(l.waiters) == 0 }

// refuses limits a request that could only be answered by overtaking waiters with a smaller funnel.
func (l *line) refuses(o *limiter.Operation, tatNs, nowNs int64) bool {
	minNs, _ := l.tolerances.from(l.waiters[0].place)
	if minNs >= int64(o.Funnel.ToleranceNs()) || o.Quantity > o.Funnel.Capacity() {
		return false // the store decides
	}
	waitNs := tatNs - minNs - nowNs
	if waitNs <= o.TTLNs {
		return false
	}
	_, o.Result = o.Funnel.ThrottleIn(o.Unit, tatNs, nowNs, 0)
	o.Result.Limited, o.Result.RetryAfter = true, o.Unit.Of(uint64(waitNs))
	return true
}

func (l *line) addLocked(nowNs int64, o *limiter.Operation, waker Waker) *Waiter {
	l.arrivals++
	w := &Waiter{
		line: l, waker: waker, limit: o.Funnel, unit: o.Unit, quantity: o.Quantity, debitNs: int64(o.DebitNs), place: l.arrivals,
		turnNs: nowNs + o.WaitNs - l.liveNs - l.answeredNs,
	}
	l.waiters = append(l.waiters, w)
	l.liveNs += w.debitNs
	l.tolerances.put(w.place, w.toleranceNs())
	l.queue.waiting.Add(1)
	if len(l.waiters) == 1 {
		l.setTimer(nowNs)
	}
	return w
}

// lookLocked returns the funnel's TAT and the wakers of due waiters.
func (l *line) lookLocked(nowNs int64) (tatNs int64, due []Waker) {
	tatNs, known := l.tatNs(nowNs)
	heldNs := tatNs - l.liveNs - l.answeredNs
	if last := l.waiters[len(l.waiters)-1]; known && before(heldNs, last.turnNs+last.toleranceNs()-last.debitNs) {
		l.looks.put(last.place, heldNs)
	}
	return tatNs, l.advanceLocked(nowNs)
}

// tatNs returns the funnel's TAT, nowNs if it is absent or the store cannot tell.
func (l *line) tatNs(nowNs int64) (tatNs int64, known bool) {
	o := limiter.Operation{Verb: limiter.Look}
	switch err := l.queue.funnels.Apply(nowNs, l.key, &o); {
	case err == nil:
		return o.AtNs, true
	case errors.Is(err, limiter.ErrWrongType):
		return nowNs, true // it is no funnel now
	}
	return nowNs, false
}

// turnNs returns the first waiter's turn.
func (l *line) turnNs(first *Waiter) int64 {
	turnNs := first.turnNs
	if heldNs, ok := l.looks.from(first.place); ok {
		if foundNs := heldNs + first.debitNs - first.toleranceNs(); before(foundNs, turnNs) {
			turnNs = foundNs
		}
	}
	return turnNs + l.answeredNs
}

// advanceLocked answers due waiters and sets the timer for the next.
func (l *line) advanceLocked(nowNs int64) (due []Waker) {
	for len(l.waiters) > 0 {
		w := l.waiters[0]
		if w.Outcome() != Waiting {
			l.gone--
		} else if l.turnNs(w) > nowNs {
			break
		} else {
			l.liveNs -= w.debitNs
			l.answeredNs += w.debitNs
			due = append(due, w.leaveLocked(Allowed))
		}
		l.waiters[0] = nil
		l.waiters = l.waiters[1:]
	}
	if l.empty() {
		l.closeLocked()
	} else {
		l.setTimer(nowNs)
	}
	return due
}

func (l *line) setTimer(nowNs int64) {
	leftNs := l.turnNs(l.waiters[0]) - nowNs
	l.timer.Reset(min(time.Duration(leftNs), lookEvery))
}

func (l *line) closeLocked() {
	l.timer.Stop()
	delete(l.part.lines, name{l.key.DB, string(l.key.Name)})
}

// giveUpLocked removes a waiter, returns its charge, and returns the wakers due then.
func (l *line) giveUpLocked(w *Waiter, nowNs int64, why Outcome) (due []Waker) {
	due = append(due, w.leaveLocked(why))
	l.liveNs -= w.debitNs
	l.giveBack(nowNs, uint64(w.debitNs))
	if l.gone++; l.gone*2 > len(l.waiters) {
		l.compactLocked()
	}
	return append(due, l.advanceLocked(nowNs)...)
}

// compactLocked drops leavers.
func (l *line) compactLocked() {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *Waiter) bool { return w.Outcome() != Waiting })
	l.gone = 0
	l.tolerances.compact(l.waiters)
	l.looks.compact(l.waiters)
}

// giveBack returns a charge to the funnel. If the store is frozen, the charge drains.
func (l *line) giveBack(nowNs int64, debitNs uint64) {
	_ = l.queue.funnels.Apply(nowNs, l.key, &limiter.Operation{Verb: limiter.GiveBack, DebitNs: debitNs})
}

// endLocked removes all waiters that are not due.
func (l *line) endLocked(nowNs int64) (tatNs int64, due []Waker) {
	tatNs, due = l.lookLocked(nowNs)
	if l.empty() {
		return tatNs, due
	}
	l.giveBack(nowNs, uint64(l.liveNs))
	for _, w := range l.waiters {
		if w.Outcome() == Waiting {
			due = append(due, w.leaveLocked(Ended))
		}
	}
	l.waiters = nil
	l.closeLocked()
	return tatNs, due
}

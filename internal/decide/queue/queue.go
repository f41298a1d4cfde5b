// Package queue is the waiting for the turn of a key's funnel: first come, first answered, as soon as the
// funnel has room. It knows no sessions. Rooms and Waiters are safe for concurrent use.
//
// A waiter's turn is known at its arrival and never gets later. It gets earlier when an earlier waiter gives
// up, or when the funnel holds less than expected.
package queue

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Funnels is the part of a store that a Room uses.
type Funnels interface {
	Apply(nowNs int64, key store.Key, step store.Step) error
}

// Waker is woken at the end of its Waiter's waiting. It must not call the Room.
type Waker interface{ Wake() }

// parts is the number of locks.
const parts = 16

// Room holds all waiters.
type Room struct {
	funnels Funnels
	now     func() int64
	seed    maphash.Seed
	waiting atomic.Int64
	parts   [parts]part

	aloneMu    sync.Mutex // guards the fields below
	alone      map[*Waiter]struct{}
	aloneEnded bool
}

type part struct {
	mu    sync.Mutex // guards the fields below, the lines and their contents
	lines map[name]*line
	ended bool
}

type name struct {
	db   uint16
	text string
}

// New returns a Room for a store's funnels. now returns Unix nanoseconds.
func New(funnels Funnels, now func() int64) *Room {
	r := &Room{funnels: funnels, now: now, seed: maphash.MakeSeed(), alone: map[*Waiter]struct{}{}}
	for i := range r.parts {
		r.parts[i].lines = map[name]*line{}
	}
	return r
}

// Waiting returns the number of waiters in lines.
func (r *Room) Waiting() int64 { return r.waiting.Load() }

func (r *Room) part(key store.Key) *part {
	return &r.parts[(maphash.Bytes(r.seed, key.Name)+uint64(key.DB))%parts]
}

// Enter applies an operation Wait for at least one unit. It returns a Waiter, whose Outcome is set when who
// is woken, or nil with the operation's Result if no waiting is needed or useful. A larger funnel does not
// let anybody overtake waiters.
func (r *Room) Enter(nowNs int64, key store.Key, o *limiter.Operation, who Waker) (w *Waiter, err error) {
	p := r.part(key)
	p.do(func() (due []Waker) {
		w, due, err = r.enterLocked(p, nowNs, key, o, who)
		return due
	})
	return w, err
}

func (r *Room) enterLocked(p *part, nowNs int64, key store.Key, o *limiter.Operation, who Waker) (w *Waiter, due []Waker, err error) {
	l := p.lines[name{key.DB, string(key.Name)}]
	if l != nil {
		var tatNs int64
		if tatNs, due = l.lookLocked(nowNs); l.empty() {
			l = nil
		} else if l.refuses(o, tatNs, nowNs) {
			return nil, due, nil
		}
	}
	if p.ended {
		o.TTLNs = 0
	}
	if err := r.funnels.Apply(nowNs, key, o); err != nil || o.Result.Limited || l == nil && o.WaitNs == 0 {
		return nil, due, err
	}
	if l == nil {
		l = r.openLocked(p, key)
	}
	return l.addLocked(nowNs, o, who), due, nil
}

// Look lets a key's waiters advance if its funnel holds less than expected.
func (r *Room) Look(key store.Key) {
	nowNs := r.now()
	p := r.part(key)
	p.do(func() (due []Waker) {
		if l := p.lines[name{key.DB, string(key.Name)}]; l != nil {
			_, due = l.lookLocked(nowNs)
		}
		return due
	})
}

func (r *Room) LookAtAll() {
	r.each((*line).lookLocked)
}

// End returns the charges of all waiters, whose Outcome is Ended, and ends waiting for good.
func (r *Room) End() {
	for i := range r.parts {
		p := &r.parts[i]
		p.do(func() []Waker {
			p.ended = true
			return nil
		})
	}
	r.each((*line).endLocked)
	r.endAlone()
}

// each applies do to all lines, one part at a time, and wakes the returned waiters.
func (r *Room) each(do func(l *line, nowNs int64) (tatNs int64, due []Waker)) {
	nowNs := r.now()
	for i := range r.parts {
		p := &r.parts[i]
		p.do(func() (due []Waker) {
			for _, l := range p.lines {
				_, some := do(l, nowNs)
				due = append(due, some...)
			}
			return due
		})
	}
}

// do runs locked under the lock and wakes the returned waiters.
func (p *part) do(locked func() (due []Waker)) {
	for _, who := range p.under(locked) {
		who.Wake()
	}
}

func (p *part) under(locked func() (due []Waker)) (due []Waker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return locked()
}

// Package queue is who waits for the turn of a key's funnel: whoever comes first is answered first, as soon as the funnel has
// room for what was debited when they came. It knows no sessions. Rooms and Waiters are safe for concurrent use.
//
// A waiter's turn is known when it comes, and never gets later. It gets earlier when somebody ahead gives up, and when the
// funnel is found to hold less than it would.
package queue

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Funnels is what a Room needs of a store.
type Funnels interface {
	Apply(nowNs int64, key store.Key, step store.Step) error
}

// Waker is woken when its Waiter waits no more. It must not call the Room.
type Waker interface{ Wake() }

// parts is how many locks share the keys.
const parts = 16

// Room is all who wait.
type Room struct {
	funnels Funnels
	now     func() int64
	seed    maphash.Seed
	waiting atomic.Int64
	parts   [parts]part

	aloneMu    sync.Mutex // guards below
	alone      map[*Waiter]struct{}
	aloneEnded bool
}

type part struct {
	mu    sync.Mutex // guards all below, the lines and what they hold
	lines map[name]*line
	ended bool
}

type name struct {
	db   uint16
	text string
}

// New returns a Room for the funnels of a store. now is the time in Unix nanoseconds.
func New(funnels Funnels, now func() int64) *Room {
	r := &Room{funnels: funnels, now: now, seed: maphash.MakeSeed(), alone: map[*Waiter]struct{}{}}
	for i := range r.parts {
		r.parts[i].lines = map[name]*line{}
	}
	return r
}

// Waiting returns how many wait in lines.
func (r *Room) Waiting() int64 { return r.waiting.Load() }

func (r *Room) part(key store.Key) *part {
	return &r.parts[(maphash.Bytes(r.seed, key.Name)+uint64(key.DB))%parts]
}

// Enter does an operation Wait, which requests more than no units. Where its turn is still to come, it returns who waits for
// it, for whom nothing else is to be done but to ask for its Outcome when the Waker is woken. Else the Waiter is nil, and the
// operation has its Result. A funnel larger than that of others who wait does not let anybody overtake them.
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

// Look has those who wait for a key move up if its funnel holds less than it would.
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

// LookAtAll is Look for all keys.
func (r *Room) LookAtAll() {
	r.each((*line).lookLocked)
}

// End gives back what was debited for those who wait, whose Outcome is Ended. From now on nobody waits.
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

// each does something with all lines, and wakes whom that returns, a part at a time.
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

// do does something under the lock, and then wakes whom that returns.
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

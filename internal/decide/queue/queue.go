// Package queue lets callers wait for their turn at a key's funnel, in order of arrival. Queues and Waiters
// are safe for concurrent use.
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

// Funnels is a store.
type Funnels interface {
	Apply(nowNs int64, key store.Key, step store.Step) error
}

// Waker is woken at the end of its Waiter's waiting. It must not call the Queue.
type Waker interface{ Wake() }

// parts is the number of locks.
const parts = 16

type Queue struct {
	funnels Funnels
	now     func() int64
	seed    maphash.Seed
	waiting atomic.Int64
	parts   [parts]part

	remoteMu    sync.Mutex // rank 35: guards the fields below
	remote      map[*Waiter]struct{}
	remoteEnded bool
}

type part struct {
	mu    sync.Mutex // rank 35: guards the fields below, the lines and their contents
	lines map[name]*line
	ended bool
}

type name struct {
	db   uint16
	text string
}

// New returns a Queue; now returns Unix nanoseconds.
func New(funnels Funnels, now func() int64) *Queue {
	q := &Queue{funnels: funnels, now: now, seed: maphash.MakeSeed(), remote: map[*Waiter]struct{}{}}
	for i := range q.parts {
		q.parts[i].lines = map[name]*line{}
	}
	return q
}

// Waiting returns the number of waiters in lines.
func (q *Queue) Waiting() int64 { return q.waiting.Load() }

func (q *Queue) part(key store.Key) *part {
	return &q.parts[(maphash.Bytes(q.seed, key.Name)+uint64(key.DB))%parts]
}

// Enter applies an operation Wait for at least one unit. It returns a Waiter, whose Outcome is set when the
// waker is called, or nil with the operation's Result if waiting is unnecessary or useless. A larger funnel
// overtakes no waiters.
func (q *Queue) Enter(nowNs int64, key store.Key, o *limiter.Operation, waker Waker) (w *Waiter, err error) {
	p := q.part(key)
	p.do(func() (due []Waker) {
		w, due, err = q.enterLocked(p, nowNs, key, o, waker)
		return due
	})
	return w, err
}

func (q *Queue) enterLocked(p *part, nowNs int64, key store.Key, o *limiter.Operation, waker Waker) (w *Waiter, due []Waker, err error) {
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
	if err := q.funnels.Apply(nowNs, key, o); err != nil || o.Result.Limited || l == nil && o.WaitNs == 0 {
		return nil, due, err
	}
	if l == nil {
		l = q.openLocked(p, key)
	}
	return l.addLocked(nowNs, o, waker), due, nil
}

// Look lets a key's waiters advance if its funnel holds less than expected.
func (q *Queue) Look(key store.Key) {
	nowNs := q.now()
	p := q.part(key)
	p.do(func() (due []Waker) {
		if l := p.lines[name{key.DB, string(key.Name)}]; l != nil {
			_, due = l.lookLocked(nowNs)
		}
		return due
	})
}

func (q *Queue) LookAtAll() { q.each(false, (*line).lookLocked) }

// End returns the charges of all waiters, whose Outcome is Ended, and ends waiting for good.
func (q *Queue) End() {
	q.each(true, (*line).endLocked)
	q.endRemote()
}

// Interrupt is End for present waiters only.
func (q *Queue) Interrupt() { q.each(false, (*line).endLocked) }

// each applies do to all lines, one part at a time, and wakes the returned waiters. If end is set, the parts
// open no more lines.
func (q *Queue) each(end bool, do func(l *line, nowNs int64) (tatNs int64, due []Waker)) {
	nowNs := q.now()
	for i := range q.parts {
		p := &q.parts[i]
		p.do(func() (due []Waker) {
			p.ended = p.ended || end
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
	due := func() []Waker {
		p.mu.Lock()
		defer p.mu.Unlock()
		return locked()
	}()
	for _, waker := range due {
		waker.Wake()
	}
}

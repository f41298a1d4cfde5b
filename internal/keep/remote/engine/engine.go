// Package engine has jobs decided by the servers of their keys: it queues them by key, sends each server one
// pipeline with a call per waiting key, sends again what was certainly not executed, and wakes the waiters.
// A key has one call in flight; jobs that arrive meanwhile share the next. An Engine is safe for concurrent
// use.
package engine

import (
	"context"
	"sync"
	"time"

	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
)

// Pool is the part of a *servers.Pool that an Engine uses.
type Pool interface {
	Clustered() bool
	Of(ctx context.Context, key string) (*servers.Server, error)
	At(addr string) *servers.Server
	Forgotten(s *servers.Server) bool
	Send(ctx context.Context, s *servers.Server, calls []*servers.Call, wait int)
}

type Config struct {
	Pool    Pool
	Scripts *script.Scripts
	Filter  *prefilter.Filter // may be nil
	Timeout time.Duration     // of a pipeline
	Wait    int               // number of replicas that must have a write; see servers.Pool.Send
	// Now is the callers' clock: monotonic Unix nanoseconds.
	Now func() int64
	// CallersTime has jobs decided at the callers' times instead of the servers'.
	CallersTime bool
}

// Engine queues, sends and retries.
type Engine struct {
	Config
	table   table
	seen    seen
	counts  counts
	waiting waiting
	working working

	funnels funnels
	natives natives
	swaps   swaps

	mu      sync.RWMutex // rank 50: guards all below
	senders map[*servers.Server]*Sender
}

// New returns an engine.
func New(c Config) *Engine {
	e := &Engine{Config: c, senders: map[*servers.Server]*Sender{}}
	e.table.init()
	e.seen.keys = map[string]reading{}
	e.working.idle.L = &e.working.mu
	e.funnels.Engine, e.natives.Engine, e.swaps.Engine = e, e, e
	return e
}

// Starting lists the keys that queued jobs have made busy, until Start.
type Starting struct{ first, last *queue }

// Queue appends a job to those of its key. It does not keep name. The sender may be nil.
func (e *Engine) Queue(to *Starting, name []byte, j *Job, sender *Sender) {
	q := e.table.push(name, j)
	if q == nil {
		return
	}
	q.sender = sender
	if to.last == nil {
		to.first = q
	} else {
		to.last.next = q
	}
	to.last = q
}

// Start has queued jobs decided.
func (e *Engine) Start(all Starting) {
	for q := all.first; q != nil; {
		next := q.next
		if q.next = nil; q.sender != nil {
			q.sender.push(q)
		} else {
			e.dispatch(q)
		}
		q = next
	}
}

// dispatch queues a key for its server.
func (e *Engine) dispatch(q *queue) {
	if q.to != nil {
		e.Sender(e.Pool.At(q.to.Addr)).push(q)
		return
	}
	server, err := e.Pool.Of(context.Background(), q.key)
	if err == nil {
		e.Sender(server).push(q)
		return
	}
	if e.takePresent(q); q.count == 0 {
		e.goOn(q)
		return
	}
	e.failed(q, servers.FailedOf(err))
}

// prepare makes the next call of a key. If it returns false, this pipeline sends none and no longer owns the
// key.
func (e *Engine) prepare(p *pipeline, q *queue) bool {
	for e.take(p, q) {
		if q.way.call(p, q) {
			return true
		}
		e.putBack(q) // what is not decided
	}
	e.goOn(q)
	return false
}

// take takes the jobs for the next call of a key. It drops jobs that nobody waits for or that are denied
// without asking. It returns false if there are none, or if the key belongs to the server's other lane.
func (e *Engine) take(p *pipeline, q *queue) bool {
	all := e.table.takeAll(q)
	for q.count = 0; all.first != nil; {
		j := all.first
		if q.count == 0 {
			q.way = e.wayOf(q, j)
			q.way.begin(q, j)
			if q.isLarge() != p.isLarge() {
				break
			}
		} else if !q.way.takes(q, j) {
			break
		}
		switch all.pop(); {
		case !j.Waiter.Waits(p.sender.server):
			j.Waiter.Fail(errGone)
		case q.way.add(p, q, j):
			q.taken.push(j)
			q.count++
		}
	}
	e.table.putBack(q, &all)
	return q.count > 0
}

// takePresent takes all jobs that somebody waits for.
func (e *Engine) takePresent(q *queue) {
	all := e.table.takeAll(q)
	for q.count, q.way = 0, nil; all.first != nil; {
		j := all.pop()
		if !j.Waiter.Waits(nil) {
			j.Waiter.Fail(errGone)
			continue
		}
		q.taken.push(j)
		q.count++
	}
}

// putBack leaves the undecided jobs to the next call.
func (e *Engine) putBack(q *queue) {
	e.table.putBack(q, &q.taken)
	q.count = 0
}

// goOn continues with a key's waiting jobs, or releases the key.
func (e *Engine) goOn(q *queue) {
	if e.putBack(q); !e.table.release(q, &e.seen) {
		e.dispatch(q)
	}
}

func (e *Engine) answered(p *pipeline, q *queue) {
	q.sentNs = p.sentNs
	if q.call.Err != nil {
		e.failed(q, servers.FailedOf(q.call.Err))
		return
	}
	if err := q.way.reply(p, q); err != nil {
		e.failed(q, &servers.Failed{Reason: servers.Refused, Executed: servers.Maybe, Text: err.Error()})
		return
	}
	q.tries, q.to = 0, nil
	e.goOn(q)
}

// maxRedirects bounds the redirections followed without a pause.
const maxRedirects = 5

// failed sends jobs again if they were certainly not executed, for a reason that may pass; else they fail.
func (e *Engine) failed(q *queue, f *servers.Failed) {
	if !f.Again() {
		e.fail(q, f)
		q.tries, q.to = 0, nil
		e.goOn(q)
		return
	}
	e.counts.resent.Add(f.Reason)
	for j := q.taken.first; j != nil; j = j.next {
		j.Waiter.SentInVain(f)
	}
	e.putBack(q)
	q.tries++
	if q.to = f.Redirect; q.to != nil && q.tries <= maxRedirects {
		e.dispatch(q)
		return
	}
	q.to = nil
	e.working.begin()
	time.AfterFunc(pause(q.tries), func() {
		defer e.working.end()
		e.dispatch(q)
	})
}

func pause(tries int) time.Duration {
	return time.Millisecond << min(tries-1, 5)
}

// fail fails the jobs taken. A call that writes nothing counts as not executed.
func (e *Engine) fail(q *queue, f *servers.Failed) {
	if f.Executed != servers.No && q.way != nil && !q.way.writes(q) {
		as := *f
		as.Executed = servers.No
		f = &as
	}
	if f.Executed != servers.No {
		e.Filter.Learn(q.key, q.taken.effect(), nil, 0)
	}
	if q.bySwap = false; q.value != nil {
		q.value.last = reading{}
	}
	if q.way != nil {
		e.counts.decided(q.count)
	}
	for q.taken.first != nil {
		q.taken.pop().Waiter.Fail(f)
	}
	q.count = 0
}

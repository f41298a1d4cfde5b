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
	"cellserver/internal/limiter"
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
	Filter  *prefilter.Filter
	Timeout time.Duration // of a pipeline
	Wait    int           // number of replicas that must have a write; see servers.Pool.Send
	// Now is the callers' clock: monotonic Unix nanoseconds.
	Now func() int64
	// Note is called for each key that is written, with what has become of its holds.
	Note func(key string, n *limiter.Notes)
	// CallersTime has jobs decided at the callers' times instead of the servers'.
	CallersTime bool
}

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

func New(c Config) *Engine {
	e := &Engine{Config: c, senders: map[*servers.Server]*Sender{}}
	e.table.init()
	e.seen.keys = map[string]reading{}
	e.working.idle.L = &e.working.mu
	e.funnels.Engine, e.natives.Engine, e.swaps.Engine = e, e, e
	return e
}

// Starting lists the keys that queued jobs have made busy, until Start.
type Starting struct{ turns }

// Queue appends a job to those of its key. It does not keep name. The sender may be nil.
func (e *Engine) Queue(to *Starting, name []byte, j *Job, sender *Sender) {
	k := e.table.push(name, j)
	if k == nil {
		return
	}
	k.sender = sender
	to.push(k)
}

// Start has queued jobs decided.
func (e *Engine) Start(all Starting) {
	for k := all.pop(); k != nil; k = all.pop() {
		if k.sender != nil {
			k.sender.push(k)
		} else {
			e.dispatch(k)
		}
	}
}

func (e *Engine) dispatch(k *turn) {
	if k.to != nil {
		e.Sender(e.Pool.At(k.to.Addr)).push(k)
		return
	}
	server, err := e.Pool.Of(context.Background(), k.key)
	if err == nil {
		e.Sender(server).push(k)
		return
	}
	if e.takePresent(k); k.count == 0 {
		e.resume(k)
		return
	}
	e.failed(k, servers.FailedOf(err))
}

// prepare makes the next call of a key. If it returns false, this pipeline sends none and no longer owns the
// key.
func (e *Engine) prepare(p *pipeline, k *turn) bool {
	for e.take(p, k) {
		if k.strategy.call(p, k) {
			return true
		}
		e.putBack(k) // what is not decided
	}
	e.resume(k)
	return false
}

// take takes the jobs for the next call of a key. It drops jobs that nobody waits for or that are denied
// without asking. It returns false if there are none, or if the key belongs to the server's other lane.
func (e *Engine) take(p *pipeline, k *turn) bool {
	all := e.table.takeAll(k)
	for k.count = 0; all.first != nil; {
		j := all.first
		if k.count == 0 {
			k.strategy = e.strategyOf(k, j)
			k.strategy.begin(k, j)
			if k.isLarge() != p.isLarge() {
				break
			}
		} else if !k.strategy.takes(k, j) {
			break
		}
		switch all.pop(); {
		case !j.Waiter.Waits(p.sender.server):
			j.Waiter.Fail(errGone)
		case k.strategy.add(p, k, j):
			k.taken.push(j)
			k.count++
		}
	}
	e.table.putBack(k, &all)
	return k.count > 0
}

// takePresent takes all jobs that somebody waits for.
func (e *Engine) takePresent(k *turn) {
	all := e.table.takeAll(k)
	for k.count, k.strategy = 0, nil; all.first != nil; {
		j := all.pop()
		if !j.Waiter.Waits(nil) {
			j.Waiter.Fail(errGone)
			continue
		}
		k.taken.push(j)
		k.count++
	}
}

// putBack leaves the undecided jobs to the next call.
func (e *Engine) putBack(k *turn) {
	e.table.putBack(k, &k.taken)
	k.count = 0
}

// resume continues with a key's waiting jobs, or releases the key.
func (e *Engine) resume(k *turn) {
	if e.putBack(k); !e.table.release(k, &e.seen) {
		e.dispatch(k)
	}
}

func (e *Engine) answered(p *pipeline, k *turn) {
	k.sentNs = p.sentNs
	if k.call.Err != nil {
		if f := servers.FailedOf(k.call.Err); k.forgoBlocks(f) {
			e.resume(k)
		} else {
			e.failed(k, f)
		}
		return
	}
	if err := k.strategy.reply(p, k); err != nil {
		e.failed(k, &servers.Failed{Reason: servers.Refused, Executed: servers.Maybe, Text: err.Error()})
		return
	}
	k.tries, k.to = 0, nil
	e.resume(k)
}

// maxRedirects bounds the redirections followed without a pause.
const maxRedirects = 5

// failed sends jobs again if they were certainly not executed, for a reason that may pass; else they fail.
func (e *Engine) failed(k *turn, f *servers.Failed) {
	if !f.Again() {
		e.fail(k, f)
		k.tries, k.to = 0, nil
		e.resume(k)
		return
	}
	e.counts.resent.Add(f.Reason)
	for j := k.taken.first; j != nil; j = j.next {
		j.Waiter.SentInVain(f)
	}
	e.putBack(k)
	k.tries++
	if k.to = f.Redirect; k.to != nil && k.tries <= maxRedirects {
		e.dispatch(k)
		return
	}
	k.to = nil
	e.working.begin()
	time.AfterFunc(time.Millisecond<<min(k.tries-1, 5), func() {
		defer e.working.end()
		e.dispatch(k)
	})
}

// fail fails the jobs taken. A call that writes nothing counts as not executed.
func (e *Engine) fail(k *turn, f *servers.Failed) {
	if f.Executed != servers.No && k.strategy != nil && !k.strategy.writes(k) {
		as := *f
		as.Executed = servers.No
		f = &as
	}
	if f.Executed != servers.No {
		e.Filter.Learn(k.key, k.taken.effect(), nil, 0)
	}
	if k.bySwap = false; k.value != nil {
		k.value.last = reading{}
	}
	if k.strategy != nil {
		e.counts.decided(k.count)
	}
	for k.taken.first != nil {
		k.taken.pop().Waiter.Fail(f)
	}
	k.count = 0
}

// strategy decides the first jobs of a key by one call. The key's owner calls its methods in this order.
type strategy interface {
	// begin begins a call, which decides first and perhaps others.
	begin(k *turn, first *Job)
	// takes reports whether the call can also decide j, behind those taken.
	takes(k *turn, j *Job) bool
	// add adds a job to the call. It returns false if it has answered the job.
	add(p *pipeline, k *turn, j *Job) bool
	// call completes the call. It returns false if it has answered jobs without one.
	call(p *pipeline, k *turn) bool
	// writes reports whether the call may change the key.
	writes(k *turn) bool
	// reply answers the jobs decided by the reply; the next call decides the rest. It returns an error for a
	// malformed reply.
	reply(p *pipeline, k *turn) error
}

// sameTime reports whether a script with one time can decide j with the jobs taken.
func (e *Engine) sameTime(k *turn, j *Job) bool {
	return !e.CallersTime || j.NowNs == k.taken.first.NowNs
}

// strategyOf returns how a key's first job is decided.
func (e *Engine) strategyOf(k *turn, j *Job) strategy {
	switch {
	case k.bySwap || j.Request == nil:
	case script.IsRun(j.Request):
		return &e.funnels
	case script.IsNative(j.Request):
		return &e.natives
	}
	return &e.swaps
}

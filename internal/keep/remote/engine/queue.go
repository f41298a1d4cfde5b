package engine

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// queue has the undecided jobs of a key in the order of their arrival. Everybody may add some.
type queue struct {
	waiting list // guarded by the lock of its part of the table
}

// turn is the right to decide a key's jobs. Its owner alone uses its fields: so a key has one call under way
// at most, all jobs that arrive meanwhile go with the next one, and those of a connection stay in order. A
// turn goes from one owner to the next:
//
//	from       to         when
//	the table  Starting   a key's first job is queued
//	Starting   a lane     Start: the key's server is known
//	a lane     pipeline   there is room for its call
//	pipeline   a lane     jobs wait for another call, or are sent again
//	pipeline   a timer    jobs are sent again after a pause
//	a timer    a lane     the pause is over
//	any        the table  no job waits: the key is released
type turn struct {
	queue // the table's, until the turn is released
	key   string

	next   *turn // in a lane, or in Starting
	sender *Sender
	tries  int               // since the last answer
	to     *servers.Redirect // of the last try

	// Of the call under way:
	taken    list // jobs that it decides
	count    int  // number of taken jobs
	strategy strategy
	call     servers.Call
	sentNs   int64 // by the local clock

	runs     script.Runs // of the strategy funnels
	refunded bool        // a job gives units back

	bySwap bool   // only a swap can do the next job
	value  *value // nil unless a strategy reads it
}

// turns is keys in order.
type turns struct{ first, last *turn }

func (l *turns) push(k *turn) {
	if l.last == nil {
		l.first = k
	} else {
		l.last.next = k
	}
	l.last = k
}

// pop removes and returns the first one, or nil.
func (l *turns) pop() *turn {
	k := l.first
	if k == nil {
		return nil
	}
	if l.first, k.next = k.next, nil; l.first == nil {
		l.last = nil
	}
	return k
}

// isLarge reports whether a key's value is large, or may be.
func (k *turn) isLarge() bool { return k.value != nil && k.value.last.large }

// bytes estimates the size of the key's next call with its reply.
func (k *turn) bytes() int {
	if k.value == nil {
		return len(k.key)
	}
	return len(k.key) + 2*len(k.value.last.Value)
}

const tableParts = 64

type table struct {
	seed  maphash.Seed
	parts [tableParts]struct {
		mu     sync.Mutex // rank 60: guards all below
		queues map[string]*queue
		_      [48]byte // a part has a cache line of its own
	}
	unused sync.Pool // of *turn
}

func (t *table) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.parts {
		t.parts[i].queues = map[string]*queue{}
	}
}

func (t *table) part(key string) int { return int(maphash.String(t.seed, key) % tableParts) }

// push puts a job behind those for a key, whose name it does not keep. If they are the first, it returns the
// key's turn.
func (t *table) push(name []byte, j *Job) *turn {
	p := &t.parts[maphash.Bytes(t.seed, name)%tableParts]
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[string(name)]; q != nil {
		q.waiting.push(j)
		return nil
	}
	k, _ := t.unused.Get().(*turn)
	if k == nil {
		k = &turn{}
		k.call.Keys = make([]string, 1)
	}
	key := string(name)
	k.key, k.call.Keys[0] = key, key
	k.waiting.push(j)
	p.queues[key] = &k.queue
	return k
}

// release ends the turn of a key without jobs, and returns false for others. The key's value is remembered
// before another turn can be made.
func (t *table) release(k *turn, remembered *seen) bool {
	p := &t.parts[t.part(k.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.waiting.first != nil {
		return false
	}
	if k.value != nil {
		remembered.add(k.key, k.value.last)
	}
	delete(p.queues, k.key)
	k.runs.Clear()
	*k = turn{call: servers.Call{Keys: k.call.Keys}, runs: k.runs}
	t.unused.Put(k)
	return true
}

func (t *table) takeAll(k *turn) list {
	p := &t.parts[t.part(k.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	all := k.waiting
	k.waiting = list{}
	return all
}

// putBack puts jobs back, before all that arrived since.
func (t *table) putBack(k *turn, l *list) {
	if l.first == nil {
		return
	}
	p := &t.parts[t.part(k.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	k.waiting.putBefore(l)
}

// Keys returns the number of keys with waiting jobs.
func (e *Engine) Keys() (n int) {
	for i := range e.table.parts {
		p := &e.table.parts[i]
		p.mu.Lock()
		n += len(p.queues)
		p.mu.Unlock()
	}
	return n
}

// Job is a request or another step to be decided by its key's server. It belongs to the engine from Queue
// until Waiter.Done or Fail.
type Job struct {
	NowNs   int64          // the caller's time
	Request *store.Request // the Step, if that is one; its name, rule and quantity are constant
	Step    store.Step
	Waiter  Waiter

	next    *Job
	covered bool // the job had arrived before the key's value was requested
	forgoes bool // the block that its denial would begin
}

type outcome struct {
	effect
	result funnel.Result // of a Request
	err    error
}

// effect is what a job does: jobs with equal effects have equal answers.
type effect struct {
	changed bool // the state
	limiter.Outcome
}

// Waiter gets a job's answer. Waits and SentInVain may be called any number of times, then either Done or
// Fail once; all of them also after the caller has given up.
type Waiter interface {
	// Waits reports whether the caller still waits. If so, the job is sent to a server, nil if that is
	// unknown yet.
	Waits(to *servers.Server) bool
	// SentInVain notes that the job was certainly not executed.
	SentInVain(f *servers.Failed)
	// Done ends a decided job. r is a request's, and units are those that it was decided for; err is of
	// package limiter or store.
	Done(r funnel.Result, units int64, err error)
	// Fail ends an undecided job.
	Fail(f *servers.Failed)
}

var errGone = &servers.Failed{Reason: servers.Timeout, Text: "nobody waits for it any more"}

// Do applies a step to a state by a clock that is byNs behind the caller's.
func Do(step store.Step, s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if timed, is := step.(limiter.Timed); is {
		return timed.DoBehind(s, nowNs, byNs)
	}
	return step.Do(s, nowNs)
}

// Again is Do for a step that has changed a state, at a later time. A decided request has the same units. A
// step but a request loses its answer.
func Again(step store.Step, s *limiter.State, nowNs, byNs int64) (changed bool) {
	if q, is := step.(*store.Request); is {
		return q.Rule.Again(s, nowNs, q.Quantity)
	}
	changed, _ = Do(step, s, nowNs, byNs) // an error is no change
	return changed
}

// do applies a job to a state, by the server's clock. A later call, for another state, supersedes it.
func (j *Job) do(s *limiter.State, serverNs int64) (o outcome) {
	if j.Request != nil {
		return j.decide(s, serverNs)
	}
	o.changed, o.err = Do(j.Step, s, serverNs, j.NowNs-serverNs)
	o.Outcome = j.Step.Outcome()
	return o
}

// decide is do for a job that is a request. The state stays on the caller's stack.
func (j *Job) decide(s *limiter.State, serverNs int64) (o outcome) {
	q := j.Request
	r := &q.Rule
	if j.forgoes {
		own := q.Rule
		r = &own
		r.Flags |= limiter.NoBlock
	}
	o.Quantity = r.Units(s, serverNs, q.Quantity)
	o.result, o.changed, o.err = r.Decide(s, serverNs, o.Quantity)
	if o.Limited, o.Cut = o.result.Limited, o.result.Marks&funnel.Cut != 0; o.err != nil {
		o.result = funnel.Result{}
	}
	return o
}

// again applies a job that has changed a state at nowNs, by the units of its outcome if it is a request, to
// another state, later.
func (j *Job) again(s *limiter.State, units, nowNs, laterNs int64) (changed bool) {
	if j.Request != nil {
		return j.Request.Rule.Again(s, laterNs, units)
	}
	step, _ := j.Step.Copy()
	return Again(step, s, laterNs, j.NowNs-nowNs)
}

// written reports whether a state that is written tells of the job. Of a limited job it may only tell
// what had expired.
func (j *Job) written(o *outcome) bool {
	return o.changed && (!o.Limited || j.Step.Traits().CountsDenied)
}

type list struct{ first, last *Job }

func (l *list) push(j *Job) {
	if l.last == nil {
		l.first = j
	} else {
		l.last.next = j
	}
	l.last = j
}

func (l *list) pop() *Job {
	j := l.first
	if l.first = j.next; l.first == nil {
		l.last = nil
	}
	j.next = nil
	return j
}

// putBefore moves all of other before the list's own.
func (l *list) putBefore(other *list) {
	if other.last == nil {
		return
	}
	other.last.next = l.first
	if l.last == nil {
		l.last = other.last
	}
	l.first = other.first
	*other = list{}
}

// effect returns what the jobs may have done to a funnel's TAT.
func (l *list) effect() limiter.Effect {
	e := limiter.Raises
	for j := l.first; j != nil; j = j.next {
		e = min(e, j.Step.Traits().TAT)
	}
	return e
}

package remote

import (
	"sync"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// batch is requests that came together; some of them wait.
type batch struct {
	store    *Store
	deadline time.Time

	before, behind *batch // in the store's deadlines, guarded by its lock

	mu       sync.Mutex      // rank 50: guards all below
	requests []store.Request // names, rules and, but with AtMost, quantities are constant
	items    []item          // the ones that wait, or waited
	left     int             // unanswered items
	canceled bool
	wake     func() // nil if none, and once called
}

// item is a waiting request of a batch, or a Step of its own. It implements engine.Waiter.
type item struct {
	engine.Job
	batch  *batch
	sender *engine.Sender // of its server, if that was known on arrival
	answer *store.Request // of the batch; nil for a Step of its own

	// The batch's lock guards all below.
	answered bool
	attempt
	err    error           // of a decided Step of its own
	failed *servers.Failed // why that is undecided; nil if it is decided
}

type attempt struct {
	sentTo *servers.Server // nil if not sent, or certainly not executed
	vain   *servers.Failed // why it was not executed
}

// tooLate returns the failure for the end of the timeout.
func (a *attempt) tooLate(timeout time.Duration) *servers.Failed {
	switch within := " within " + timeout.String(); {
	case a.sentTo != nil:
		return &servers.Failed{Reason: servers.Timeout, Executed: servers.Maybe, Text: "no answer from " + a.sentTo.Addr + within}
	case a.vain != nil:
		return a.vain
	default:
		return &servers.Failed{Reason: servers.Timeout, Text: "the servers have not taken the request" + within}
	}
}

// single is one allocation for a batch of one request, as most are.
type single struct {
	batch    batch
	requests [1]store.Request
	items    [1]item
}

// newBatch returns a copy of a batch; the requests in ask wait.
func newBatch(s *Store, nowNs int64, requests []store.Request, ask []place) *batch {
	var b *batch
	if len(requests) == 1 {
		one := &single{}
		b = &one.batch
		b.requests, b.items = append(one.requests[:0], requests[0]), one.items[:]
	} else {
		b = &batch{requests: append([]store.Request(nil), requests...), items: make([]item, len(ask))}
	}
	b.store, b.left = s, len(ask)
	b.copyNames()
	for i, p := range ask {
		it := &b.items[i]
		q := &b.requests[p.at]
		it.answer = q
		if q.Rule.Flags&limiter.AtMost != 0 { // the answer has other units
			asked := *q
			q = &asked
		}
		it.Job, it.batch, it.sender = engine.Job{NowNs: nowNs, Request: q, Step: q, Waiter: it}, b, p.sender
	}
	return b
}

// copyNames copies the names out of the connection's buffer.
func (b *batch) copyNames() {
	n := 0
	for i := range b.requests {
		n += len(b.requests[i].Key.Name)
	}
	names := make([]byte, 0, n)
	for i := range b.requests {
		from := len(names)
		names = append(names, b.requests[i].Key.Name...)
		b.requests[i].Key.Name = names[from:len(names):len(names)]
	}
}

func (it *item) Waits(to *servers.Server) bool {
	b := it.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	if it.answered || b.canceled {
		return false
	}
	it.attempt = attempt{sentTo: to}
	return true
}

func (it *item) SentInVain(f *servers.Failed) {
	it.batch.mu.Lock()
	it.attempt = attempt{vain: f}
	it.batch.mu.Unlock()
}

func (it *item) Done(r funnel.Result, units int64, err error) {
	isFirst := it.end(func() {
		step := it.Step
		if it.err = err; it.answer != nil {
			it.answer.Result, it.answer.Err = r, err
			decidedFor(it.answer, units)
			step = it.answer
		}
		if err == nil {
			it.batch.store.counts.outcome(step.Outcome())
		}
	})
	if !isFirst && it.Request != nil {
		it.batch.store.counts.late.Add(1)
	}
}

func (it *item) Fail(f *servers.Failed) { it.end(func() { it.failLocked(f) }) }

// end answers an item, and reports whether it was not answered before.
func (it *item) end(answerLocked func()) bool {
	b := it.batch
	if it.Request != nil {
		b.store.engine.Leave(it.Request.Key.Name, it.sender)
	}
	b.mu.Lock()
	if it.answered {
		b.mu.Unlock()
		return false
	}
	answerLocked()
	it.answered = true
	b.left--
	wake := b.wakeLocked()
	b.mu.Unlock()
	wake()
	return true
}

func (it *item) failLocked(f *servers.Failed) {
	s := it.batch.store
	switch {
	case it.batch.canceled:
	case it.answer != nil:
		s.decideFailed(it.answer, f)
	default:
		it.failed = f
		s.counts.failed.Add(f.Reason)
	}
}

// wakeLocked returns a function to be called without the lock.
func (b *batch) wakeLocked() func() {
	if b.left > 0 {
		return nothing
	}
	b.store.deadlines.remove(b)
	wake := b.wake
	b.wake = nil
	if wake == nil || b.canceled {
		return nothing
	}
	return wake
}

func nothing() {}

// expire answers the waiting requests of a batch after its deadline.
func (s *Store) expire(b *batch) {
	b.mu.Lock()
	for i := range b.items {
		if it := &b.items[i]; !it.answered {
			it.answered = true
			b.left--
			it.failLocked(it.tooLate(s.Timeout))
		}
	}
	wake := b.wakeLocked()
	b.mu.Unlock()
	wake()
}

func (b *batch) Notify(wake func()) {
	b.mu.Lock()
	b.wake = wake
	if b.left > 0 {
		wake = nothing
	} else {
		wake = b.wakeLocked()
	}
	b.mu.Unlock()
	wake()
}

func (b *batch) Answers() (answered []store.Request, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 {
		return nil, false
	}
	return b.requests, true
}

// Cancel implements store.Pending. Unsent requests are not sent.
func (b *batch) Cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.canceled = true
	b.wake = nil
	b.store.deadlines.remove(b)
}

// deadlines lists the waiting batches by deadline, with one timer for the first.
type deadlines struct {
	mu          sync.Mutex // rank 60: guards all below
	first, last *batch
	timer       *time.Timer // nil until first used
	armed       bool
	closed      bool
}

// add appends a batch, whose deadline is the last. It returns false if the store is closed.
func (d *deadlines) add(b *batch, timeout time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	b.deadline = time.Now().Add(timeout)
	b.before, b.behind = d.last, nil
	if d.last == nil {
		d.first = b
	} else {
		d.last.behind = b
	}
	d.last = b
	if !d.armed {
		d.armLocked(timeout)
	}
	return true
}

func (d *deadlines) armLocked(in time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(in, d.due)
		return
	}
	d.timer.Reset(in)
}

// remove removes a batch, if it is still there.
func (d *deadlines) remove(b *batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(b)
}

func (d *deadlines) removeLocked(b *batch) {
	if d.first != b && b.before == nil {
		return
	}
	if b.before == nil {
		d.first = b.behind
	} else {
		b.before.behind = b.behind
	}
	if b.behind == nil {
		d.last = b.before
	} else {
		b.behind.before = b.before
	}
	b.before, b.behind = nil, nil
}

func (d *deadlines) due() {
	for {
		b := d.nextDue()
		if b == nil {
			return
		}
		b.store.expire(b)
	}
}

// nextDue removes and returns a batch after its deadline, or arms the timer for the first one.
func (d *deadlines) nextDue() *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = false
	if d.first == nil {
		return nil
	}
	if in := time.Until(d.first.deadline); in > 0 && !d.closed {
		d.armLocked(in)
		return nil
	}
	b := d.first
	d.removeLocked(b)
	return b
}

// close expires all batches and accepts no more.
func (d *deadlines) close() {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.due()
}

package remote

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/keep/remote/timeline"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// others decides everything but plain-funnel requests, by the arithmetic of package limiter: a key's value
// is read, and swapped for the one that comes out, if nobody has changed it meanwhile. What waits for a key
// is decided together, in the order in which it came; a key has one call under way, and a server one
// pipeline, with a call for each key that something waits for. A value that was seen a moment ago is taken
// for the present one: if it is not, the swap returns that.
//
// Only the server knows when a swap is executed. So what is granted is decided at a time that is certainly
// not later, and stamped by the script; what is not granted is decided at the time of a reply that was
// asked for afterwards.
type others struct {
	store *Store

	mu      sync.Mutex // guards all below, and what of lines says so
	lines   map[string]*line
	senders map[senderOf]*sender
	seen    map[string]known // of keys that nothing waits for
}

const (
	// knownFor is how long a value is taken for the present one.
	knownFor = time.Second
	// seenKeys and seenBytes bound how many values are kept, and the bytes of each with its key.
	seenKeys, seenBytes = 4096, 1 << 10
	// lineTasks is how many are decided by one call at most.
	lineTasks = 1024
)

// known is what was found at a key, and when: by the servers' clock, and by ours when the reply came.
type known struct {
	found
	is       bool
	large    bool // it is, or was, more than largeBytes
	serverNs int64
	at       time.Time
}

// nowNs returns the servers' time, or a slightly earlier one. A later one would allow what is not allowed
// yet.
func (k *known) nowNs() int64 { return timeline.After(k.serverNs, int64(time.Since(k.at))) }

// errContended is why a task was sent in vain if others have changed its key each time.
var errContended = &servers.Failed{Reason: servers.Timeout, Text: "others have changed the key each time"}

// errGone is what a task fails with that nobody waits for.
var errGone = &servers.Failed{Reason: servers.Timeout, Text: "nobody waits for it any more"}

// waiter is who waits for a task. All may be called when it does not any more.
type waiter interface {
	// waits reports whether it does, and notes that the task is sent to a server.
	waits(to *servers.Server) bool
	// sentInVain notes that what was sent was not done.
	sentInVain(f *servers.Failed)
	// done and fail end the task.
	done(t *task)
	fail(f *servers.Failed)
}

// task is a deed that waits to be done.
type task struct {
	deed
	waiter waiter
	err    error // of package limiter or store
	did    did
}

// did is what doing a task has come to.
type did struct {
	changed bool // the state became another by it
	limited bool
	count   int64 // of an operation
}

// written reports whether a state that is written tells of the task. Of a limited task it may only tell
// what had expired.
func (t *task) written() bool {
	countsDenied := t.request != nil && t.request.Rule.Flags&limiter.CountDenied != 0
	return t.did.changed && (!t.did.limited || countsDenied)
}

// line is a key, and what waits for it. It has one goroutine at a time.
type line struct {
	name    string
	waiting []*task // others.mu guards it

	known   known
	covered int // of the first tasks: that were there when known was asked for

	tries int               // in vain, since there was an answer
	to    *servers.Redirect // whereto the last one was sent on
	apart bool              // the next call must not be a native one

	// Of the call that is under way:
	call    *servers.Call
	sentNs  int64 // by the store's clock
	trying  int   // how many of the first tasks it decides; none if it reads
	changed bool  // what they change is that the key has
	next    limiter.State
	nextNs  int64
	stamps  limiter.Stamps // of next, if that is written later than at nextNs
	native  bool           // see nativeScript
}

func (o *others) init(s *Store) {
	o.store = s
	o.lines, o.senders, o.seen = map[string]*line{}, map[senderOf]*sender{}, map[string]known{}
}

// add has a task done that is about a key.
func (o *others) add(name string, t *task) {
	o.mu.Lock()
	l, busy := o.lines[name]
	if !busy {
		l = &line{name: name}
		if k, is := o.seen[name]; is && time.Since(k.at) < knownFor {
			l.known = k
		}
		delete(o.seen, name)
		o.lines[name] = l
	}
	l.waiting = append(l.waiting, t)
	o.mu.Unlock()
	if !busy {
		o.dispatch(l)
	}
}

// dispatch has a line's next call sent by its server's sender.
func (o *others) dispatch(l *line) {
	server, err := o.serverOf(l)
	if err != nil {
		o.notNow(l, failedOf(err))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	of := senderOf{server, l.known.large}
	n := o.senders[of]
	if n == nil {
		maps.DeleteFunc(o.senders, func(of senderOf, n *sender) bool {
			return !n.working && o.store.Pool.Forgotten(of.server)
		})
		n = &sender{others: o, senderOf: of}
		o.senders[of] = n
	}
	n.ready = append(n.ready, l)
	if !n.working {
		n.working = true
		o.store.working.begin()
		go n.work()
	}
}

func (o *others) serverOf(l *line) (*servers.Server, error) {
	if l.to != nil {
		return o.store.Pool.At(l.to.Addr), nil
	}
	return o.store.Pool.Of(context.Background(), l.name)
}

// notNow has a line wait a little whose server is not known, or cannot decide, if that passes.
func (o *others) notNow(l *line, f *servers.Failed) {
	if !f.Again() {
		o.failAll(l, f)
		return
	}
	tasks := o.present(l, nil)
	for _, t := range tasks {
		t.waiter.sentInVain(f)
	}
	if len(tasks) == 0 {
		return
	}
	l.tries++
	o.store.after(l.tries, func() { o.dispatch(l) })
}

// failAll has all fail that waits for a key, and ends its line.
func (o *others) failAll(l *line, f *servers.Failed) {
	l.known, l.covered = known{}, 0
	for {
		tasks := o.take(l, lineTasks)
		if len(tasks) == 0 {
			return
		}
		for _, t := range tasks {
			t.waiter.fail(f)
		}
	}
}

// take takes the first tasks off a line, which ends if there is none.
func (o *others) take(l *line, n int) []*task {
	o.mu.Lock()
	defer o.mu.Unlock()
	n = min(n, len(l.waiting))
	tasks := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	l.covered = max(0, l.covered-n)
	if n == 0 {
		o.endLocked(l)
	}
	return tasks
}

// takeWritten takes the tasks off a line of which the state that its call has written tells. The call's
// other tasks were there when it was answered.
func (o *others) takeWritten(l *line) (tasks []*task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left []*task
	for _, t := range l.waiting[:l.trying] {
		if t.written() {
			tasks = append(tasks, t)
		} else {
			left = append(left, t)
		}
	}
	l.covered = len(left)
	l.waiting = append(left, l.waiting[l.trying:]...)
	return tasks
}

// endLocked forgets a line that nothing waits for, but what it knows.
func (o *others) endLocked(l *line) {
	delete(o.lines, l.name)
	if l.known.large {
		l.known = known{large: true, at: l.known.at}
	}
	if !l.known.is && !l.known.large || len(l.known.value)+len(l.name) > seenBytes {
		return
	}
	for name := range o.seen {
		if len(o.seen) < seenKeys {
			break
		}
		delete(o.seen, name)
	}
	o.seen[l.name] = l.known
}

// present returns the first tasks for which somebody waits, as many as a call decides at most. Where there is none the line has
// ended.
func (o *others) present(l *line, server *servers.Server) []*task {
	for {
		tasks, gone, left := o.parted(l, server)
		for _, t := range gone {
			t.waiter.fail(errGone)
		}
		if len(tasks) > 0 || left == 0 {
			return tasks
		}
	}
}

// parted returns the first tasks of a line by whether somebody waits for them, and how many others there are. Those that are gone
// leave it.
func (o *others) parted(l *line, server *servers.Server) (tasks, gone []*task, left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(l.waiting), lineTasks)
	for _, t := range l.waiting[:n] {
		if t.waiter.waits(server) {
			tasks = append(tasks, t)
			continue
		}
		if gone = append(gone, t); l.covered > len(tasks) {
			l.covered--
		}
	}
	left = len(l.waiting) - n
	if len(gone) > 0 {
		l.waiting = append(slices.Clone(tasks), l.waiting[n:]...)
	}
	if len(l.waiting) == 0 {
		o.endLocked(l)
	}
	return tasks, gone, left
}

// do does a deed to a key, and waits for it.
func (s *Store) do(key store.Key, d *deed) error {
	if err := d.check(s.CallersTime); err != nil {
		return err
	}
	w := &caller{answered: make(chan struct{})}
	s.others.add(s.name(key), &task{deed: d.copied(), waiter: w})
	timer := time.NewTimer(s.Timeout)
	defer timer.Stop()
	select {
	case <-w.answered:
	case <-timer.C:
		w.expire(s.Timeout)
	}
	if w.failed != nil {
		s.counts.failed.Add(w.failed.Reason)
		return failureOf(w.failed)
	}
	d.take(&w.task.deed)
	if o, is := d.outcome(); is && w.task.err == nil {
		s.counts.outcome(o.kind, o.quantity, o.limited)
	}
	return w.task.err
}

// caller implements waiter for one who waits on a channel.
type caller struct {
	answered chan struct{}

	mu    sync.Mutex // guards all below, until it is answered
	ended bool
	attempt
	task   *task
	failed *servers.Failed
}

func (w *caller) waits(to *servers.Server) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sentTo = to
	return !w.ended
}

func (w *caller) sentInVain(f *servers.Failed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempt = attempt{vain: f}
}

func (w *caller) done(t *task) { w.end(t, nil) }

func (w *caller) fail(f *servers.Failed) { w.end(nil, f) }

func (w *caller) end(t *task, f *servers.Failed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended, w.task, w.failed = true, t, f
		close(w.answered)
	}
}

// expire has it fail, unless it has ended, as its time is over.
func (w *caller) expire(timeout time.Duration) {
	w.mu.Lock()
	f := w.tooLate(timeout)
	w.mu.Unlock()
	w.fail(f)
}

package remote

import (
	"context"
	"slices"
	"time"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

const (
	// roundKeys is how many calls a pipeline has at most, and roundBytes how many bytes, or one call more.
	roundKeys  = 256
	roundBytes = 1 << 20
	// largeRoundKeys is that for values that are large, or may be.
	largeRoundKeys = 8
)

// senderOf is what a sender is for. Large values have a sender of their own, for which other keys do not
// wait.
type senderOf struct {
	server *servers.Server
	large  bool
}

// sender sends pipelines to a server, one at a time, while there are lines that want a call.
type sender struct {
	others *others
	senderOf

	ready   []*line // others.mu guards all below
	working bool
}

func (n *sender) work() {
	defer n.others.store.working.end()
	for {
		lines := n.next()
		if len(lines) == 0 {
			return
		}
		n.round(lines)
	}
}

// next takes the lines that are ready, and ends the work if there is none.
func (n *sender) next() (lines []*line) {
	o := n.others
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes, most := 0, roundKeys
	if n.large {
		most = largeRoundKeys
	}
	for len(lines) < min(most, len(n.ready)) && bytes < roundBytes {
		l := n.ready[len(lines)]
		bytes += 2*len(l.known.value) + len(l.name)
		lines = append(lines, l)
	}
	n.ready = n.ready[len(lines):]
	n.working = len(lines) > 0
	return lines
}

// round sends the next call of each line.
func (n *sender) round(lines []*line) {
	o, s := n.others, n.others.store
	calls, asked, wait := make([]*servers.Call, 0, len(lines)), lines[:0], 0
	for _, l := range lines {
		if !o.prepare(l, n.server) {
			continue
		}
		l.call.Asking, l.call.Large = l.to != nil && l.to.Asking, n.large
		l.sentNs = s.Now()
		calls, asked = append(calls, l.call), append(asked, l)
		if l.trying > 0 {
			wait = s.Wait
		}
	}
	if len(calls) == 0 {
		return
	}
	ctx, cancel := s.timeout(context.Background())
	s.counts.pipelines.Add(1)
	s.counts.scripts.Add(uint64(len(calls)))
	s.Pool.Send(ctx, n.server, calls, wait)
	cancel()
	for _, l := range asked {
		f := l.failed()
		if f == nil || !f.Again() {
			l.tries, l.to = 0, nil
			o.advance(l)
			continue
		}
		s.counts.resent.Add(f.Reason)
		o.again(l, f)
	}
}

// again has a line's call made again that was certainly not executed: at once where its key is said to be, or in a while.
func (o *others) again(l *line, f *servers.Failed) {
	l.call = nil
	if l.to = f.Redirect; l.to == nil || l.tries >= maxRedirects {
		l.to = nil
		o.notNow(l, f)
		return
	}
	l.tries++
	for _, t := range o.first(l, l.covered) {
		t.waiter.sentInVain(f)
	}
	o.dispatch(l)
}

func (l *line) failed() *servers.Failed {
	if l.call.Err == nil {
		return nil
	}
	return failedOf(l.call.Err)
}

// prepare makes a line's next call. It is false if none is wanted, as all was answered.
func (o *others) prepare(l *line, server *servers.Server) bool {
	for {
		tasks := o.present(l, server)
		if len(tasks) == 0 {
			return false
		}
		if l.call = o.nativeCall(l, tasks); l.call != nil {
			l.covered, l.trying, l.changed, l.native = len(tasks), len(tasks), true, true
			return true
		}
		if l.native = false; !l.known.is {
			l.covered, l.trying = len(tasks), 0
			l.call = o.store.readCall(tasks[0].nowNs, []string{l.name}, l.known.large)
			return true
		}
		if n := min(l.covered, len(tasks)); n > 0 && !o.decideAt(l, tasks[:n], l.known.serverNs, nil) {
			o.finish(l, n) // as what was found is of a time at which all of them waited
			continue
		}
		o.prepareSwap(l, tasks)
		return true
	}
}

// prepareSwap makes a swap that writes what tasks change, or asks whether all is still as it is known.
func (o *others) prepareSwap(l *line, tasks []*task) {
	nowNs := l.known.nowNs()
	course := limiter.Follow(&l.known.state, nowNs)
	l.changed = o.decideAt(l, tasks, nowNs, &course)
	l.covered, l.trying = len(tasks), len(tasks)
	w := o.store.newSwap(l.nextNs, 1, true)
	var to *limiter.State
	if l.stamps = nil; l.changed {
		to = &l.next
		l.stamps = course.Stamps(to)
	}
	w.key(l.name, &l.known.found, to, l.stamps, l.nextNs)
	l.call = &w.call
}

// decideAt does tasks to what is known of a key, at a time of the server, or at the callers'. A course that
// is not nil follows the state.
func (o *others) decideAt(l *line, tasks []*task, serverNs int64, course *limiter.Course) (changed bool) {
	l.nextNs = serverNs
	l.next = owned(l.known.state, 0)
	for _, t := range tasks {
		if o.store.CallersTime {
			l.nextNs = t.nowNs
		}
		if t.did, t.err = (did{}), l.known.err; t.err == nil {
			t.did, t.err = t.doing(&l.next, l.nextNs)
		}
		if changed = changed || t.did.changed; t.did.changed && course != nil {
			*course = t.follow(*course, &l.next)
		}
	}
	return changed
}

// finish answers the first tasks of a line.
func (o *others) finish(l *line, n int) {
	o.answer(l, o.take(l, n))
}

// answer answers tasks that were taken off a line.
func (o *others) answer(l *line, tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	o.store.counts.asked.Add(uint64(len(tasks)))
	o.store.counts.joined.Add(uint64(len(tasks) - 1))
	l.apart = false
	o.store.learn(l.name, effectOf(tasks), &l.known.state, l.sentNs)
	for _, t := range tasks {
		t.err = t.answer(t.err)
		t.waiter.done(t)
	}
}

// fail has those tasks fail that a line's call was for. What was only read may have been executed.
func (o *others) fail(l *line, f *servers.Failed) {
	if l.trying == 0 || !l.changed {
		as := *f
		as.Executed = servers.No
		f = &as
	}
	n := l.covered
	l.known, l.apart = known{}, false
	tasks := o.take(l, n)
	if f.Executed != servers.No {
		o.store.learn(l.name, effectOf(tasks), nil, l.sentNs)
	}
	for _, t := range tasks {
		t.waiter.fail(f)
	}
}

// effectOf is what tasks may have done to a TAT.
func effectOf(tasks []*task) (e effect) {
	for _, t := range tasks {
		e = max(e, t.effect())
	}
	return e
}

// advance takes the answer to a line's call, and has it go on.
func (o *others) advance(l *line) {
	rest, serverNs, f := []any(nil), int64(0), l.failed()
	if f == nil {
		var err error
		if rest, serverNs, err = replyOf(l.call.Reply); err != nil {
			f = &servers.Failed{Reason: servers.Refused, Executed: servers.Maybe, Text: err.Error()}
		}
	}
	if f != nil {
		o.fail(l, f)
	} else {
		o.learn(l, rest, serverNs)
	}
	if l.call = nil; o.more(l) {
		o.dispatch(l)
	}
}

// learn takes what a call has returned.
func (o *others) learn(l *line, rest []any, serverNs int64) {
	k := known{is: true, serverNs: serverNs, at: time.Now()}
	if l.native {
		o.learnNative(l, rest, k)
		return
	}
	if l.trying == 0 {
		if len(rest) == 0 { // it is read again
			l.known = known{large: true, at: k.at}
			return
		}
		k.found = foundIn(rest[0])
		l.knows(k)
		return
	}
	switch done, now := swapped(rest); {
	case !done:
		k.found = now
		o.inVain(l)
		l.knows(k)
	case l.changed:
		o.written(l, k)
	default: // it is decided at that time: perhaps something is granted by now
		k.found = l.known.found
		l.knows(k)
	}
}

// written answers tasks whose swap has written, with what came of them at the time of the swap. A task that
// was limited may not be so any more by then. If there is one, only the tasks that were written are
// answered, as they were decided, and the others are decided again.
func (o *others) written(l *line, k known) {
	decidedNs, next := l.nextNs, l.next
	if k.absent = next.ExpiresNs <= decidedNs; !k.absent {
		l.stamps.Apply(&next, max(0, k.serverNs-decidedNs))
		k.value, k.state = valueOf(&next), next
		k.err = limiter.Accept(&k.state)
	}
	tasks := o.first(l, l.trying)
	was := make([]did, len(tasks))
	for i, t := range tasks {
		was[i] = t.did
	}
	o.decideAt(l, tasks, k.serverNs, nil)
	if slices.EqualFunc(tasks, was, func(t *task, was did) bool { return t.did == was }) {
		l.knows(k)
		o.finish(l, l.trying)
		return
	}
	o.decideAt(l, tasks, decidedNs, nil)
	l.knows(k)
	o.answer(l, o.takeWritten(l))
}

// knows notes what was found at a line's key.
func (l *line) knows(k known) {
	k.large = len(k.value) > largeBytes
	l.known = k
}

// inVain notes that a line's swap has found another value.
func (o *others) inVain(l *line) {
	for _, t := range o.first(l, l.trying) {
		t.waiter.sentInVain(errContended)
	}
}

// first returns the first tasks of a line.
func (o *others) first(l *line, n int) []*task {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(l.waiting[:n])
}

// more reports whether something waits for a line still; else it has ended.
func (o *others) more(l *line) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(l.waiting) == 0 {
		o.endLocked(l)
		return false
	}
	return true
}

func first(of []any) any {
	if len(of) == 0 {
		return nil
	}
	return of[0]
}

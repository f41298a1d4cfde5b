package remote

import (
	"context"
	"slices"
	"time"

	"cellserver/internal/remote/servers"
)

const (
	// roundKeys is how many calls a pipeline has at most, and roundBytes how many bytes, or one call more.
	roundKeys  = 256
	roundBytes = 1 << 20
	// largeRoundKeys is that for values that are large, or may be.
	largeRoundKeys = 8
)

// senderOf is what a sender is for: what is large does not keep other keys waiting.
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
		changed := o.decide(l, tasks)
		if changed || l.covered < len(tasks) { // else what was found is of a time at which all of them waited
			l.covered, l.trying, l.changed = len(tasks), len(tasks), changed
			w := o.store.newSwap(l.nextNs, 1, true)
			to := &l.next
			if !changed {
				to = nil
			}
			l.value = w.key(l.name, &l.known.found, to, l.nextNs)
			l.call = &w.call
			return true
		}
		o.finish(l, len(tasks))
	}
}

// decide does tasks to what is known of a key, now.
func (o *others) decide(l *line, tasks []*task) (changed bool) {
	return o.decideAt(l, tasks, l.known.nowNs())
}

func (o *others) decideAt(l *line, tasks []*task, serverNs int64) (changed bool) {
	l.nextNs = serverNs
	st := owned(l.known.state, 0)
	for _, t := range tasks {
		if o.store.CallersTime {
			l.nextNs = t.nowNs
		}
		if t.err = l.known.err; t.err == nil {
			var did bool
			did, t.err = t.do(&st, l.nextNs)
			changed = changed || did
		}
	}
	l.next = st
	return changed
}

// finish answers the first tasks of a line.
func (o *others) finish(l *line, n int) {
	o.store.counts.asked.Add(uint64(n))
	o.store.counts.joined.Add(uint64(n - 1))
	l.apart = false
	for _, t := range o.take(l, n) {
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
	for _, t := range o.take(l, n) {
		t.waiter.fail(f)
	}
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
	done, now := swapped(rest)
	if !done {
		k.found = now
		o.inVain(l)
		l.knows(k)
		return
	}
	k.found = l.known.found
	if l.changed {
		k.found = found{absent: l.value == "", value: l.value, state: l.next}
	}
	l.knows(k)
	o.finish(l, l.trying)
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

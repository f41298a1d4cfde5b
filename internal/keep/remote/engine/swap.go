package engine

import (
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/known"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// swaps is the way of everything else, by the arithmetic of package limiter: a key's value is read, and swapped for the one that
// comes out, if nobody has changed it meanwhile. A value that was seen a moment ago is taken for the present one: if it is not, the
// swap returns that.
//
// Only the server knows when a swap is executed. So what is granted is decided at a time that is certainly
// not later, and stamped by the script; what is not granted is decided at the time of a reply that was
// asked for afterwards.
type swaps struct{ *Engine }

// maxSwapped is how many jobs a call decides at most.
const maxSwapped = 1024

// value is what is known of a key's value, and what is to become of it.
type value struct {
	last reading

	// Of the call that is under way:
	reads   bool // it only reads
	changed bool // what it writes is another value
	next    limiter.State
	nextNs  int64
	stamps  limiter.Stamps // of next, if that is written later than at nextNs
	was     []Did          // what was decided for it, in an array that is used again
}

// hasValue gives a key room for a value.
func (q *queue) hasValue() {
	if q.value == nil {
		q.value = &value{}
	}
}

func (w *swaps) begin(q *queue, _ *Job) {
	if q.hasValue(); !q.value.last.is && !q.value.last.large {
		q.value.last = w.seen.take(q.key)
	}
}

func (w *swaps) takes(q *queue, _ *Job) bool { return q.count < maxSwapped }

func (w *swaps) add(*pipeline, *queue, *Job) bool { return true }

func (w *swaps) call(_ *pipeline, q *queue) bool {
	v := q.value
	if v.reads = !v.last.is; v.reads {
		q.call.Script, q.call.Args = w.Scripts.Read, w.Scripts.ReadArgs(q.taken.first.NowNs, v.last.large)
		return true
	}
	if n := q.coveredJobs(); n > 0 && !w.decideAt(q, n, v.last.serverNs, nil) {
		w.answer(q, n) // as what was found is of a time at which all of them waited
		return false
	}
	w.callSwap(q)
	return true
}

// coveredJobs returns how many of the first jobs were there when the value was asked for.
func (q *queue) coveredJobs() (n int) {
	for j := q.taken.first; j != nil && j.covered; j = j.next {
		n++
	}
	return n
}

// callSwap makes a swap that writes what jobs change, or asks whether all is still as it is known.
func (w *swaps) callSwap(q *queue) {
	v := q.value
	nowNs := v.last.nowNs()
	course := limiter.Follow(&v.last.State, nowNs)
	v.changed = w.decideAt(q, q.count, nowNs, &course)
	c := w.Scripts.NewSwap(v.nextNs, 1, true)
	var to *limiter.State
	if v.stamps = nil; v.changed {
		to = &v.next
		v.stamps = course.Stamps(to)
	}
	c.Key(q.key, &v.last.Found, to, v.stamps, v.nextNs)
	q.call.Script, q.call.Args = c.Call.Script, c.Call.Args
}

// decideAt does the first jobs to what is known of a key, at a time of the server, or at the callers'. A course that
// is not nil follows the state.
func (w *swaps) decideAt(q *queue, n int, serverNs int64, course *limiter.Course) (changed bool) {
	v := q.value
	v.nextNs = serverNs
	v.next = script.Owned(v.last.State, 0)
	for j := q.taken.first; n > 0; j, n = j.next, n-1 {
		if w.CallersTime {
			v.nextNs = j.NowNs
		}
		if j.did, j.Err = (Did{}), v.last.Err; j.Err == nil {
			j.do(&v.next, v.nextNs)
		}
		if changed = changed || j.did.Changed; j.did.Changed && course != nil {
			*course = j.follow(*course, &v.next)
		}
	}
	return changed
}

func (w *swaps) writes(q *queue) bool { return !q.value.reads && q.value.changed }

func (w *swaps) reply(p *pipeline, q *queue) error {
	rest, r, err := read(p, q)
	if err != nil {
		return err
	}
	v := q.value
	if v.reads {
		if len(rest) == 0 { // it is read again
			v.last = reading{large: true, at: r.at}
			return nil
		}
		r.Found = script.FoundIn(rest[0])
		q.found(r)
		return nil
	}
	switch done, now := script.Swapped(rest); {
	case !done:
		r.Found = now
		w.inVain(q)
		q.found(r)
	case v.changed:
		w.written(q, r)
	default: // it is decided at that time: perhaps something is granted by now
		r.Found = v.last.Found
		q.found(r)
	}
	return nil
}

// read reads a reply.
func read(p *pipeline, q *queue) (rest []any, r reading, err error) {
	rest, serverNs, err := script.ReplyOf(q.call.Reply)
	if err != nil {
		return nil, r, err
	}
	p.tells(serverNs)
	return rest, reading{is: true, serverNs: serverNs, at: time.Now()}, nil
}

// errContended is why a job was sent in vain if others have changed its key each time.
var errContended = &servers.Failed{Reason: servers.Timeout, Text: "others have changed the key each time"}

// inVain notes that a call has found another value.
func (w *swaps) inVain(q *queue) {
	for j := q.taken.first; j != nil; j = j.next {
		j.Waiter.SentInVain(errContended)
	}
}

// found notes what was found at a key, for all jobs that were there when it was asked for.
func (q *queue) found(r reading) {
	q.value.knows(r)
	for j := q.taken.first; j != nil; j = j.next {
		j.covered = true
	}
}

func (v *value) knows(r reading) {
	r.large = len(r.Value) > script.LargeBytes
	v.last = r
}

// written answers jobs whose swap has written, with what came of them at the time of the swap. A job that
// was limited may not be so any more by then. If there is one, only the jobs that were written are
// answered, as they were decided, and the others are decided again.
func (w *swaps) written(q *queue, r reading) {
	v := q.value
	decidedNs, next := v.nextNs, v.next
	if r.Absent = next.ExpiresNs <= decidedNs; !r.Absent {
		v.stamps.Apply(&next, max(0, r.serverNs-decidedNs))
		r.Value, r.State = script.ValueOf(&next), next
		r.Err = limiter.Accept(&r.State)
	}
	was := v.was[:0]
	for j := q.taken.first; j != nil; j = j.next {
		was = append(was, j.did)
	}
	v.was = was
	if w.decideAt(q, q.count, r.serverNs, nil); q.did(was) {
		q.found(r)
		w.answer(q, q.count)
		return
	}
	w.decideAt(q, q.count, decidedNs, nil)
	q.found(r)
	w.answer(q, q.writtenFirst())
}

// did reports whether the jobs came to this.
func (q *queue) did(what []Did) bool {
	for j := q.taken.first; j != nil; j, what = j.next, what[1:] {
		if j.did != what[0] {
			return false
		}
	}
	return true
}

// writtenFirst puts the jobs that the state which was written tells of before the others, and returns how many they are.
func (q *queue) writtenFirst() (n int) {
	var written, others list
	for q.taken.first != nil {
		if j := q.taken.pop(); j.written() {
			written.push(j)
			n++
		} else {
			others.push(j)
		}
	}
	others.putBefore(&written)
	q.taken = others
	return n
}

// answer answers the first jobs of a key.
func (w *swaps) answer(q *queue, n int) {
	if n == 0 {
		return
	}
	q.bySwap = false
	var effect known.Effect
	for j, left := q.taken.first, n; left > 0; j, left = j.next, left-1 {
		effect = max(effect, j.effect())
	}
	w.Known.Learn(q.key, effect, &q.value.last.State, q.sentNs)
	w.counts.decided(n)
	for ; n > 0; n-- {
		j := q.taken.pop()
		if j.Err != nil {
			j.Result = funnel.Result{}
		}
		j.Waiter.Done(j)
	}
}

package engine

import (
	"slices"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
)

// swaps is the way of everything else, by the arithmetic of package limiter: a key's value is read, and
// swapped for the one that comes out, if nobody has changed it meanwhile. A value that was seen a moment ago
// is taken for the present one: if it is not, the swap returns that.
//
// Only the server knows when a swap is executed. So what is granted is decided at a time that is certainly
// not later, and stamped by the script; what is not granted is decided at the time of a reply that was asked
// for afterwards.
type swaps struct{ *Engine }

// maxSwapped is how many jobs a call decides at most.
const maxSwapped = 1024

func (w *swaps) begin(q *queue, _ *Job) {
	if v := q.hasValue(); !v.last.is && !v.last.large {
		v.last = w.seen.take(q.key)
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
		w.answer(q, false) // as what was found is of a time at which all of them waited
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
		q.inVain()
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
	was := slices.Clone(v.outcomes)
	w.decideAt(q, q.count, r.serverNs, nil)
	same := slices.EqualFunc(v.outcomes, was, func(is, was outcome) bool { return is.did == was.did })
	if !same {
		w.decideAt(q, q.count, decidedNs, nil)
	}
	q.found(r)
	w.answer(q, !same)
}

package engine

import (
	"slices"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
)

// swaps decides everything else by the arithmetic of package limiter: it reads a key's value, and swaps it
// for the next one unless it has changed meanwhile. A recently seen value is taken for the present one: if it
// is not, the swap returns that.
//
// Only the server knows when a swap is executed. So grants are decided at a time that is certainly not later,
// and again at a later one, up to which the script writes what lies between: see script.Patch. Denials are
// decided at the time of a reply to a later call.
type swaps struct{ *Engine }

const maxSwapped = 1024

func (w *swaps) begin(k *turn, _ *Job) {
	if v := k.hasValue(); !v.last.is && !v.last.large {
		v.last = w.seen.take(k.key)
	}
}

func (w *swaps) takes(k *turn, _ *Job) bool { return k.count < maxSwapped }

func (w *swaps) add(*pipeline, *turn, *Job) bool { return true }

func (w *swaps) call(_ *pipeline, k *turn) bool {
	v := k.value
	if v.reads = !v.last.is; v.reads {
		k.call.Script, k.call.Args = w.Scripts.Read, w.Scripts.ReadArgs(k.taken.first.NowNs, v.last.large)
		return true
	}
	if n := k.coveredJobs(); n > 0 && !w.decideAt(k, n, v.last.serverNs) {
		w.answer(k, false) // all of them waited when the value was read
		return false
	}
	w.callSwap(k)
	return true
}

// coveredJobs counts the first jobs that had arrived before the value was requested.
func (k *turn) coveredJobs() (n int) {
	for j := k.taken.first; j != nil && j.covered; j = j.next {
		n++
	}
	return n
}

// callSwap makes a swap that writes the jobs' changes, or checks that the value has not changed.
func (w *swaps) callSwap(k *turn) {
	v := k.value
	v.changed = w.decideAt(k, k.count, v.last.nowNs())
	c := w.Scripts.NewSwap(v.nextNs, 1, true)
	if v.changed {
		change := w.change(k)
		v.next, v.patches = change.To, change.Patches
		c.Change(k.key, &v.last.Found, &change)
	} else {
		c.Keep(k.key, &v.last.Found)
	}
	k.call.Script, k.call.Args = c.Call.Script, c.Call.Args
}

func (w *swaps) writes(k *turn) bool { return !k.value.reads && k.value.changed }

func (w *swaps) reply(p *pipeline, k *turn) error {
	rest, r, err := read(p, k)
	if err != nil {
		return err
	}
	v := k.value
	if v.reads {
		if len(rest) == 0 { // it is read again
			v.last = reading{large: true, at: r.at}
			return nil
		}
		r.Found = script.FoundIn(rest[0])
		k.found(r)
		return nil
	}
	switch done, now := script.Swapped(rest); {
	case !done:
		r.Found = now
		k.inVain()
		k.found(r)
	case v.changed:
		w.written(k, r)
	default: // decided again at that time, at which something may be granted
		r.Found = v.last.Found
		k.found(r)
	}
	return nil
}

func read(p *pipeline, k *turn) (rest []any, r reading, err error) {
	rest, serverNs, err := script.ReplyOf(k.call.Reply)
	if err != nil {
		return nil, r, err
	}
	p.tells(serverNs)
	return rest, reading{is: true, serverNs: serverNs, at: time.Now()}, nil
}

// written answers jobs after a swap: as they were decided, if all are allowed and written, else by the swap's
// time. If a job that was limited is not limited at that time, only the written jobs are answered, as they
// were decided, and the rest are decided again.
func (w *swaps) written(k *turn, r reading) {
	v := k.value
	decidedNs, next := v.nextNs, v.next
	if r.Absent = next.ExpiresNs <= decidedNs; !r.Absent {
		v.patches.Apply(&next, max(0, r.serverNs-decidedNs))
		r.Value, r.State = script.ValueOf(&next), next
		r.Err = limiter.Accept(&r.State)
	}
	same := !slices.ContainsFunc(v.outcomes, func(o outcome) bool { return o.Limited || !o.changed })
	if !same {
		was := slices.Clone(v.outcomes)
		w.decideAt(k, k.count, r.serverNs)
		same = slices.EqualFunc(v.outcomes, was, func(is, was outcome) bool { return is.effect == was.effect })
		if !same {
			w.decideAt(k, k.count, decidedNs)
		}
	}
	k.found(r)
	w.answer(k, !same)
}

package engine

import (
	"errors"
	"slices"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// funnels decides requests of plain funnels: a script does, in closed form, and the answers follow from the
// TAT that it returns.
type funnels struct{ *Engine }

func (w *funnels) begin(k *turn, first *Job) {
	k.runs.Begin(w.Scripts, first.NowNs)
	k.refunded = false
}

func (w *funnels) takes(k *turn, j *Job) bool {
	if j.Request == nil || !script.IsRun(j.Request) {
		return false
	}
	return w.sameTime(k, j) && k.runs.Fits(j.Request)
}

func (w *funnels) add(p *pipeline, k *turn, j *Job) bool {
	if !k.refunded { // there may have been an answer to learn from since the job came
		if r, denied := w.Filter.Deny(j.Request, &p.sender.Timeline, p.localNs); denied {
			j.Waiter.Done(r, 1, nil)
			return false
		}
	}
	k.refunded = k.refunded || j.Request.Quantity < 0 // what was known before does not count behind a refund
	k.runs.Add(j.Request)
	return true
}

func (w *funnels) call(_ *pipeline, k *turn) bool {
	k.call.Script, k.call.Args = w.Scripts.Funnel, k.runs.Args()
	return true
}

func (w *funnels) writes(*turn) bool { return true }

var errMalformed = errors.New("a server's reply is malformed")

func (w *funnels) reply(p *pipeline, k *turn) error {
	r, ok := w.Scripts.FunnelReplyOf(k.call.Reply)
	switch {
	case !ok:
		return errMalformed
	case r.NoFunnel:
		k.bySwap = true
		return nil
	}
	if p.tells(r.NowNs); k.value != nil {
		k.value.last = reading{} // out of date
	}
	w.replay(k, r)
	return nil
}

// replay decides the jobs as the script has. The filter learns of the key before any caller has its answer.
func (w *funnels) replay(k *turn, r script.FunnelReply) {
	w.learn(k, r)
	w.counts.decided(k.count)
	state := limiter.State{ExpiresNs: r.TATNs}
	for k.taken.first != nil {
		j := k.taken.pop()
		o := j.decide(&state, r.NowNs)
		j.Waiter.Done(o.result, o.Quantity, o.err)
	}
}

func (w *funnels) learn(k *turn, r script.FunnelReply) {
	state := limiter.State{ExpiresNs: r.TATNs}
	full, refunded := false, false
	for j := k.taken.first; j != nil; j = j.next {
		o := j.decide(&state, r.NowNs)
		full, refunded = o.Limited || o.result.Remaining == 0, refunded || j.Request.Quantity < 0
	}
	state.ExpiresNs = max(state.ExpiresNs, r.NowNs)
	switch {
	case refunded:
		w.Filter.Learn(k.key, limiter.Lowers, nil, k.sentNs)
	case full:
		w.Filter.Note(k.taken.last.Request.Key.Name, state.ExpiresNs, k.sentNs)
	default:
		w.Filter.Learn(k.key, limiter.Raises, &state, k.sentNs)
	}
}

// natives decides requests of fixed windows and buckets: a script does their arithmetic and returns the
// earlier value, from which the answers follow. Swaps do the rest.
type natives struct{ *Engine }

func (w *natives) begin(k *turn, _ *Job) { k.hasValue() }

func (w *natives) takes(k *turn, j *Job) bool {
	if j.Request == nil || j.Request.Rule.Kind != k.taken.first.Request.Rule.Kind {
		return false
	}
	return w.sameTime(k, j) && k.count < maxSwapped && script.IsNative(j.Request)
}

func (w *natives) add(*pipeline, *turn, *Job) bool { return true }

func (w *natives) call(_ *pipeline, k *turn) bool {
	first := k.taken.first
	args, run := w.Scripts.NativeArgs(first.Request.Rule.Kind, first.NowNs), int64(0)
	for j := first; j != nil; j = j.next {
		if run++; j.next == nil || !sameRequest(j, j.next) {
			args, run = script.AppendNativeRun(args, run, j.Request), 0
		}
	}
	k.call.Script, k.call.Args = w.Scripts.Native, args
	return true
}

func sameRequest(a, b *Job) bool {
	return a.Request.Quantity == b.Request.Quantity && a.Request.Rule == b.Request.Rule
}

func (w *natives) writes(*turn) bool { return true }

func (w *natives) reply(p *pipeline, k *turn) error {
	rest, r, err := read(p, k)
	if err != nil {
		return err
	}
	v := k.value
	if len(rest) == 0 {
		k.inVain()
		k.bySwap, v.last = true, reading{}
		return nil
	}
	r.Found = script.FoundIn(rest[0])
	v.last = r
	if w.decideAt(k, k.count, r.serverNs) {
		v.last.State = v.next
		v.last.Absent = v.next.ExpiresNs <= r.serverNs
		if v.last.Value = ""; !v.last.Absent {
			v.last.Value = script.ValueOf(&v.next)
		}
	}
	w.answer(k, false)
	return nil
}

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
	c := w.Scripts.NewSwap(v.nextNs, 1)
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

// forgoBlocks has denials begin no blocks, for which the server of a swap has no memory: they hold without.
// It reports whether there are some.
func (k *turn) forgoBlocks(f *servers.Failed) (some bool) {
	if w, is := k.strategy.(*swaps); !is || f.Reason != servers.OutOfMemory || !w.writes(k) {
		return false
	}
	j := k.taken.first
	for i := range k.value.outcomes {
		if o := &k.value.outcomes[i]; j.Request != nil && o.changed && !j.forgoes {
			rule := j.Request.Rule
			j.forgoes = rule.ForgoBlock(&o.result)
			some = some || j.forgoes
		}
		j = j.next
	}
	return some
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
	w.Note(k.key, &v.notes)
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

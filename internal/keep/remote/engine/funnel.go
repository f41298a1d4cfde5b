package engine

import (
	"errors"

	"cellserver/internal/keep/remote/script"
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
	if j.Request == nil || j.Request.Rule.Kind != limiter.Funnel || j.Request.Rule.Flags != 0 {
		return false
	}
	return w.sameTime(k, j) && k.runs.Fits(j.Request)
}

func (w *funnels) add(p *pipeline, k *turn, j *Job) bool {
	if !k.refunded { // there may have been an answer to learn from since the job came
		if r, denied := w.Filter.Deny(j.Request, &p.sender.Timeline, p.localNs); denied {
			j.Waiter.Done(r, nil)
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
		result, _, err := j.Request.Rule.Decide(&state, r.NowNs, j.Request.Quantity)
		j.Waiter.Done(result, err)
	}
}

func (w *funnels) learn(k *turn, r script.FunnelReply) {
	state := limiter.State{ExpiresNs: r.TATNs}
	full, refunded := false, false
	for j := k.taken.first; j != nil; j = j.next {
		result, _, _ := j.Request.Rule.Decide(&state, r.NowNs, j.Request.Quantity)
		full, refunded = result.Limited || result.Remaining == 0, refunded || j.Request.Quantity < 0
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

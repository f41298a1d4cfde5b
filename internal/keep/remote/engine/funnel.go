package engine

import (
	"errors"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// funnels decides requests of plain funnels: a script does, in closed form, and the answers follow from the
// TAT that it returns.
type funnels struct{ *Engine }

func (w *funnels) begin(q *queue, first *Job) {
	q.runs.Begin(w.Scripts, first.NowNs)
	q.refunded = false
}

func (w *funnels) takes(q *queue, j *Job) bool {
	if j.Request == nil || j.Request.Rule.Kind != limiter.Funnel || j.Request.Rule.Flags != 0 {
		return false
	}
	return w.sameTime(q, j) && q.runs.Fits(j.Request)
}

func (w *funnels) add(p *pipeline, q *queue, j *Job) bool {
	if !q.refunded && w.prefiltered(p, j) {
		return false
	}
	q.refunded = q.refunded || j.Request.Quantity < 0 // what was known before does not count behind a refund
	q.runs.Add(j.Request)
	return true
}

// prefiltered denies a job if it can: there may have been an answer to learn from since the job came.
func (w *funnels) prefiltered(p *pipeline, j *Job) bool {
	if w.Filter == nil { // saves the copy
		return false
	}
	q := store.Request{Key: j.Request.Key, Rule: j.Request.Rule, Quantity: j.Request.Quantity}
	if !w.Filter.Decide(&q, &p.sender.Timeline, p.localNs) {
		return false
	}
	j.Waiter.Done(q.Result, nil)
	return true
}

func (w *funnels) call(_ *pipeline, q *queue) bool {
	q.call.Script, q.call.Args = w.Scripts.Funnel, q.runs.Args()
	return true
}

func (w *funnels) writes(*queue) bool { return true }

var errMalformed = errors.New("a server's reply is malformed")

func (w *funnels) reply(p *pipeline, q *queue) error {
	r, ok := w.Scripts.FunnelReplyOf(q.call.Reply)
	switch {
	case !ok:
		return errMalformed
	case r.NoFunnel:
		q.bySwap = true
		return nil
	}
	if p.tells(r.NowNs); q.value != nil {
		q.value.last = reading{} // out of date
	}
	w.replay(q, r)
	return nil
}

// replay decides the jobs as the script has. The filter learns of the key before any caller has its answer.
func (w *funnels) replay(q *queue, r script.FunnelReply) {
	if w.Filter != nil {
		w.learn(q, r)
	}
	w.counts.decided(q.count)
	state := limiter.State{ExpiresNs: r.TATNs}
	for q.taken.first != nil {
		j := q.taken.pop()
		result, _, err := j.Request.Rule.Decide(&state, r.NowNs, j.Request.Quantity)
		j.Waiter.Done(result, err)
	}
}

func (w *funnels) learn(q *queue, r script.FunnelReply) {
	state := limiter.State{ExpiresNs: r.TATNs}
	full, refunded := false, false
	for j := q.taken.first; j != nil; j = j.next {
		result, _, _ := j.Request.Rule.Decide(&state, r.NowNs, j.Request.Quantity)
		full, refunded = result.Limited || result.Remaining == 0, refunded || j.Request.Quantity < 0
	}
	state.ExpiresNs = max(state.ExpiresNs, r.NowNs)
	switch {
	case refunded:
		w.Filter.Learn(q.key, limiter.Lowers, nil, q.sentNs)
	case full:
		w.Filter.Note(q.taken.last.Request.Key.Name, state.ExpiresNs, q.sentNs)
	default:
		w.Filter.Learn(q.key, limiter.Raises, &state, q.sentNs)
	}
}

// natives decides requests of fixed windows and buckets: a script does their arithmetic and returns the
// earlier value, from which the answers follow. Swaps do the rest.
type natives struct{ *Engine }

func (w *natives) begin(q *queue, _ *Job) { q.hasValue() }

func (w *natives) takes(q *queue, j *Job) bool {
	if j.Request == nil || j.Request.Rule.Kind != q.taken.first.Request.Rule.Kind {
		return false
	}
	return w.sameTime(q, j) && q.count < maxSwapped && script.IsNative(j.Request)
}

func (w *natives) add(*pipeline, *queue, *Job) bool { return true }

func (w *natives) call(_ *pipeline, q *queue) bool {
	first := q.taken.first
	args, run := w.Scripts.NativeArgs(first.Request.Rule.Kind, first.NowNs), int64(0)
	for j := first; j != nil; j = j.next {
		if run++; j.next == nil || !sameRequest(j, j.next) {
			args, run = script.AppendNativeRun(args, run, j.Request), 0
		}
	}
	q.call.Script, q.call.Args = w.Scripts.Native, args
	return true
}

func sameRequest(a, b *Job) bool {
	return a.Request.Quantity == b.Request.Quantity && a.Request.Rule == b.Request.Rule
}

func (w *natives) writes(*queue) bool { return true }

func (w *natives) reply(p *pipeline, q *queue) error {
	rest, r, err := read(p, q)
	if err != nil {
		return err
	}
	v := q.value
	if len(rest) == 0 {
		q.inVain()
		q.bySwap, v.last = true, reading{}
		return nil
	}
	r.Found = script.FoundIn(rest[0])
	v.last = r
	if w.decideAt(q, q.count, r.serverNs) {
		v.last.State = v.next
		v.last.Absent = v.next.ExpiresNs <= r.serverNs
		if v.last.Value = ""; !v.last.Absent {
			v.last.Value = script.ValueOf(&v.next)
		}
	}
	w.answer(q, false)
	return nil
}

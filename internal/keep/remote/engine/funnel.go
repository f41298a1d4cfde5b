package engine

import (
	"errors"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// funnels decides requests of plain funnels: a script does, in closed form, and the answers follow from the TAT that it returns.
type funnels struct{ *Engine }

func (w *funnels) begin(q *queue, first *Job) {
	q.runs.Begin(w.Scripts, first.NowNs)
	q.refunded = false
}

func (w *funnels) takes(q *queue, j *Job) bool {
	if j.Request == nil || j.Request.Rule.Kind != limiter.Funnel {
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

package engine

import (
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
)

// way is how the first jobs of a key are decided by one call. Its methods are called by the key's owner, in
// this order.
type way interface {
	// begin begins a call that decides a job, and perhaps others.
	begin(q *queue, first *Job)
	// takes reports whether the call decides a job, too, behind those that were taken.
	takes(q *queue, j *Job) bool
	// add adds a job to the call. It is false if the job was answered, as its answer is known.
	add(p *pipeline, q *queue, j *Job) bool
	// call completes the call of what was taken. It is false if there is none, as some of that was answered
	// without.
	call(p *pipeline, q *queue) bool
	// writes reports whether the call may change the key.
	writes(q *queue) bool
	// reply answers what the call's reply decides of what was taken: the rest is decided by the next call.
	// The error is that the reply makes no sense.
	reply(p *pipeline, q *queue) error
}

// sameTime reports whether a script that decides at one time can decide a job with those that were taken.
func (e *Engine) sameTime(q *queue, j *Job) bool {
	return !e.CallersTime || j.NowNs == q.taken.first.NowNs
}

// wayOf returns how a key's first job is decided.
func (e *Engine) wayOf(q *queue, j *Job) way {
	switch {
	case q.bySwap || j.Request == nil:
	case j.Request.Rule.Kind == limiter.Funnel:
		return &e.funnels
	case script.IsNative(j.Request):
		return &e.natives
	}
	return &e.swaps
}

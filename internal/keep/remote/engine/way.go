package engine

import (
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
)

// way decides the first jobs of a key by one call. The key's owner calls its methods in this order.
type way interface {
	// begin begins a call, which decides first and perhaps others.
	begin(q *queue, first *Job)
	// takes reports whether the call can also decide j, behind those taken.
	takes(q *queue, j *Job) bool
	// add adds a job to the call. It returns false if it has answered the job.
	add(p *pipeline, q *queue, j *Job) bool
	// call completes the call. It returns false if it has answered jobs without one.
	call(p *pipeline, q *queue) bool
	// writes reports whether the call may change the key.
	writes(q *queue) bool
	// reply answers the jobs decided by the reply; the next call decides the rest. It returns an error for a
	// malformed reply.
	reply(p *pipeline, q *queue) error
}

// sameTime reports whether a script with one time can decide j with the jobs taken.
func (e *Engine) sameTime(q *queue, j *Job) bool {
	return !e.CallersTime || j.NowNs == q.taken.first.NowNs
}

// wayOf returns how a key's first job is decided.
func (e *Engine) wayOf(q *queue, j *Job) way {
	switch {
	case q.bySwap || j.Request == nil:
	case j.Request.Rule.Kind == limiter.Funnel && j.Request.Rule.Flags == 0:
		return &e.funnels
	case script.IsNative(j.Request):
		return &e.natives
	}
	return &e.swaps
}

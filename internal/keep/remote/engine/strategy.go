package engine

import (
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
)

// strategy decides the first jobs of a key by one call. The key's owner calls its methods in this order.
type strategy interface {
	// begin begins a call, which decides first and perhaps others.
	begin(k *turn, first *Job)
	// takes reports whether the call can also decide j, behind those taken.
	takes(k *turn, j *Job) bool
	// add adds a job to the call. It returns false if it has answered the job.
	add(p *pipeline, k *turn, j *Job) bool
	// call completes the call. It returns false if it has answered jobs without one.
	call(p *pipeline, k *turn) bool
	// writes reports whether the call may change the key.
	writes(k *turn) bool
	// reply answers the jobs decided by the reply; the next call decides the rest. It returns an error for a
	// malformed reply.
	reply(p *pipeline, k *turn) error
}

// sameTime reports whether a script with one time can decide j with the jobs taken.
func (e *Engine) sameTime(k *turn, j *Job) bool {
	return !e.CallersTime || j.NowNs == k.taken.first.NowNs
}

// strategyOf returns how a key's first job is decided.
func (e *Engine) strategyOf(k *turn, j *Job) strategy {
	switch {
	case k.bySwap || j.Request == nil:
	case j.Request.Rule.Kind == limiter.Funnel && j.Request.Rule.Flags == 0:
		return &e.funnels
	case script.IsNative(j.Request):
		return &e.natives
	}
	return &e.swaps
}

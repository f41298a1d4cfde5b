package engine

import (
	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Job is a request or another step to be decided by its key's server. It belongs to the engine from Queue
// until Waiter.Done or Fail.
type Job struct {
	NowNs   int64          // the caller's time
	Request *store.Request // name, rule and quantity are constant; nil for a Step
	Step    store.Step     // nil for a Request
	Waiter  Waiter

	next    *Job
	covered bool // the job had arrived before the key's value was requested
}

type outcome struct {
	effect
	result funnel.Result // of a Request
	err    error
}

// effect is what a job does: jobs with equal effects have equal answers.
type effect struct {
	changed bool // the state
	limiter.Outcome
}

// Waiter gets a job's answer. Waits and SentInVain may be called any number of times, then either Done or
// Fail once; all of them also after the caller has given up.
type Waiter interface {
	// Waits reports whether the caller still waits. If so, the job is sent to a server, nil if that is
	// unknown yet.
	Waits(to *servers.Server) bool
	// SentInVain notes that the job was certainly not executed.
	SentInVain(f *servers.Failed)
	// Done ends a decided job. r is a request's; err is of package limiter or store.
	Done(r funnel.Result, err error)
	// Fail ends an undecided job.
	Fail(f *servers.Failed)
}

var errGone = &servers.Failed{Reason: servers.Timeout, Text: "nobody waits for it any more"}

// Do applies a step to a state by a clock that is byNs behind the caller's.
func Do(step store.Step, s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if timed, is := step.(limiter.Timed); is {
		return timed.DoBehind(s, nowNs, byNs)
	}
	return step.Do(s, nowNs)
}

// Again is Do for a step that has changed a state, at a later time. A step but a request loses its answer.
func Again(step store.Step, s *limiter.State, nowNs, byNs int64) (changed bool) {
	if q, is := step.(*store.Request); is {
		return q.Rule.Again(s, nowNs, q.Quantity)
	}
	changed, _ = Do(step, s, nowNs, byNs) // an error is no change
	return changed
}

// do applies a job to a state, by the server's clock. A later call, for another state, supersedes it.
func (j *Job) do(s *limiter.State, serverNs int64) (o outcome) {
	q := j.Request
	if q == nil {
		o.changed, o.err = Do(j.Step, s, serverNs, j.NowNs-serverNs)
		o.Outcome = j.Step.Outcome()
		return o
	}
	o.result, o.changed, o.err = q.Rule.Decide(s, serverNs, q.Quantity)
	if o.Limited, o.Cut = o.result.Limited, o.result.Marks&funnel.Cut != 0; o.err != nil {
		o.result = funnel.Result{}
	}
	return o
}

// again applies a job that has changed a state at nowNs to another state, later.
func (j *Job) again(s *limiter.State, nowNs, laterNs int64) (changed bool) {
	step := j.step()
	if j.Request == nil {
		step, _ = step.Copy()
	}
	return Again(step, s, laterNs, j.NowNs-nowNs)
}

// step returns the step to apply. For a request it is a copy, as its result belongs to the waiter.
func (j *Job) step() store.Step {
	if j.Request != nil {
		return j.Request
	}
	return j.Step
}

// written reports whether a state that is written tells of the job. Of a limited job it may only tell
// what had expired.
func (j *Job) written(o *outcome) bool {
	return o.changed && (!o.Limited || j.step().Traits().CountsDenied)
}

type list struct{ first, last *Job }

func (l *list) push(j *Job) {
	if l.last == nil {
		l.first = j
	} else {
		l.last.next = j
	}
	l.last = j
}

func (l *list) pop() *Job {
	j := l.first
	if l.first = j.next; l.first == nil {
		l.last = nil
	}
	j.next = nil
	return j
}

// putBefore moves all of other before the list's own.
func (l *list) putBefore(other *list) {
	if other.last == nil {
		return
	}
	other.last.next = l.first
	if l.last == nil {
		l.last = other.last
	}
	l.first = other.first
	*other = list{}
}

// effect returns what the jobs may have done to a funnel's TAT.
func (l *list) effect() limiter.Effect {
	e := limiter.Raises
	for j := l.first; j != nil; j = j.next {
		e = min(e, j.step().Traits().TAT)
	}
	return e
}

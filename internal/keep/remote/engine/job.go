package engine

import (
	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Job is a request, or another step, that waits to be decided by the server of its key. From Queue on it
// belongs to the engine, until its Waiter is told what came of it.
type Job struct {
	NowNs   int64          // the caller's time
	Request *store.Request // whose name, rule and quantity nobody changes; nil for a Step
	Step    store.Step     // nil for a Request
	Waiter  Waiter

	next    *Job
	covered bool // the job was there when the value that is known of its key was asked for
}

// outcome is what a job has come to.
type outcome struct {
	did
	result funnel.Result // of a Request
	err    error
}

// did is what a job has done. If it is done again and has done the same, it has the same answers.
type did struct {
	changed bool // the state became another by it
	limiter.Outcome
}

// Waiter is who waits for a job. Waits and SentInVain may be called any number of times, and then one of Done
// and Fail once. All may be called when nobody waits any more.
type Waiter interface {
	// Waits reports whether somebody waits. If so, the job is sent to a server, or to one that is not known
	// yet if that is nil.
	Waits(to *servers.Server) bool
	// SentInVain notes that what the job was sent for was certainly not done.
	SentInVain(f *servers.Failed)
	// Done ends the job, which is decided: the result is a request's, the error of package limiter or store.
	Done(r funnel.Result, err error)
	// Fail ends the job, which is not decided.
	Fail(f *servers.Failed)
}

// errGone is what a job fails with that nobody waits for.
var errGone = &servers.Failed{Reason: servers.Timeout, Text: "nobody waits for it any more"}

// Do does a step to a state, by a clock that is so much behind the caller's.
func Do(step store.Step, s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if timed, is := step.(limiter.Timed); is {
		return timed.DoBehind(s, nowNs, byNs)
	}
	return step.Do(s, nowNs)
}

// Follow returns the course of a state after a step has changed it.
func Follow(c limiter.Course, step store.Step, s *limiter.State) limiter.Course {
	if step.Traits().Absolute {
		return c.Set(s)
	}
	return c.Did(s)
}

// do does a job to a state, by the server's clock. It may be called again for another state: then that is
// what was done.
func (j *Job) do(s *limiter.State, serverNs int64) (o outcome) {
	q := j.Request
	if q == nil {
		o.changed, o.err = Do(j.Step, s, serverNs, j.NowNs-serverNs)
		o.Outcome = j.Step.Outcome()
		return o
	}
	o.result, o.changed, o.err = q.Rule.Decide(s, serverNs, q.Quantity)
	if o.Limited = o.result.Limited; o.err != nil {
		o.result = funnel.Result{}
	}
	return o
}

// step returns what is done. A request is not done by it, as its result belongs to who waits.
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

// list is jobs in order.
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

package engine

import (
	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/known"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Job is a request, or another step, that waits to be decided by the server of its key. From Queue on it belongs to the engine, until
// its Waiter is told what came of it.
type Job struct {
	NowNs   int64          // the caller's time
	Request *store.Request // whose name, rule and quantity nobody changes; nil for a Step
	Step    Step           // nil for a Request
	Waiter  Waiter

	next    *Job
	covered bool // the job was there when the value that is known of its key was asked for
}

// Step is what is done to a key's state that is not a request.
type Step interface {
	// Do does it to a state, by the server's clock. It may be called again for another state: then that is what was done.
	Do(s *limiter.State, serverNs int64) (d Did, err error)
	// Follow returns the course of a state after Do has changed it.
	Follow(c limiter.Course, s *limiter.State) limiter.Course
	// Effect returns what the step may do to a funnel's TAT.
	Effect() known.Effect
}

// Did is what doing a job has come to.
type Did struct {
	Changed bool // the state became another by it
	Limited bool
	Count   int64 // of an operation
}

// Waiter is who waits for a job. Waits and SentInVain may be called any number of times, and then one of Done and Fail once. All may be
// called when nobody waits any more.
type Waiter interface {
	// Waits reports whether somebody waits. If so, the job is sent to a server, or to one that is not known yet if that is nil.
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

// do does a job to a state.
func (j *Job) do(s *limiter.State, serverNs int64) (o outcome) {
	q := j.Request
	if q == nil {
		o.Did, o.err = j.Step.Do(s, serverNs)
		return o
	}
	o.result, o.Changed, o.err = q.Rule.Decide(s, serverNs, q.Quantity)
	if o.Limited = o.result.Limited; o.err != nil {
		o.result = funnel.Result{}
	}
	return o
}

// follow returns the course of a state after the job has changed it.
func (j *Job) follow(c limiter.Course, s *limiter.State) limiter.Course {
	if j.Request != nil {
		return c.Did(s)
	}
	return j.Step.Follow(c, s)
}

// effect returns what the job may do to a funnel's TAT.
func (j *Job) effect() known.Effect {
	switch {
	case j.Request == nil:
		return j.Step.Effect()
	case j.Request.Quantity < 0:
		return known.Lowered
	}
	return known.Raised
}

// written reports whether a state that is written tells of the job. Of a limited job it may only tell
// what had expired.
func (j *Job) written(o *outcome) bool {
	countsDenied := j.Request != nil && j.Request.Rule.Flags&limiter.CountDenied != 0
	return o.Changed && (!o.Limited || countsDenied)
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
func (l *list) effect() (e known.Effect) {
	for j := l.first; j != nil; j = j.next {
		e = max(e, j.effect())
	}
	return e
}

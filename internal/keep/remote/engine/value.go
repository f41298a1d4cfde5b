package engine

import (
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// value is what is known of a key's value, and what is to become of it.
type value struct {
	last reading

	// Of the call that is under way, or that was answered:
	reads    bool // it only reads
	changed  bool // what it writes is another value
	next     limiter.State
	nextNs   int64
	stamps   limiter.Stamps // of next, if that is written later than at nextNs
	outcomes []outcome      // of the first jobs, one for each that was decided
}

// hasValue gives a key room for a value.
func (q *queue) hasValue() *value {
	if q.value == nil {
		q.value = &value{}
	}
	return q.value
}

// found notes what was found at a key, for all jobs that were there when it was asked for.
func (q *queue) found(r reading) {
	r.large = len(r.Value) > script.LargeBytes
	q.value.last = r
	for j := q.taken.first; j != nil; j = j.next {
		j.covered = true
	}
}

// errContended is why a job was sent in vain if others have changed its key each time.
var errContended = &servers.Failed{Reason: servers.Timeout, Text: "others have changed the key each time"}

// inVain notes that a call has found another value.
func (q *queue) inVain() {
	for j := q.taken.first; j != nil; j = j.next {
		j.Waiter.SentInVain(errContended)
	}
}

// decideAt does the first jobs to what is known of a key, at a time of the server, or at the callers'. A
// course that is not nil follows the state.
func (e *Engine) decideAt(q *queue, n int, serverNs int64, course *limiter.Course) (changed bool) {
	v := q.value
	v.nextNs, v.outcomes = serverNs, v.outcomes[:0]
	v.next = limiter.Shifted(v.last.State, 0)
	for j := q.taken.first; len(v.outcomes) < n; j = j.next {
		if e.CallersTime {
			v.nextNs = j.NowNs
		}
		o := outcome{err: v.last.Err}
		if o.err == nil {
			o = j.do(&v.next, v.nextNs)
		}
		if changed = changed || o.changed; o.changed && course != nil {
			*course = Follow(*course, j.step(), &v.next)
		}
		v.outcomes = append(v.outcomes, o)
	}
	return changed
}

// answer answers the jobs that were decided, or of these only those of which the state that was written
// tells.
func (e *Engine) answer(q *queue, onlyWritten bool) {
	v := q.value
	var answered, others list
	outcomes := v.outcomes[:0]
	for _, o := range v.outcomes {
		j := q.taken.pop()
		if onlyWritten && !j.written(&o) {
			others.push(j)
			continue
		}
		answered.push(j)
		outcomes = append(outcomes, o)
	}
	q.taken.putBefore(&others)
	if len(outcomes) == 0 {
		return
	}
	q.bySwap = false
	e.Filter.Learn(q.key, answered.effect(), &v.last.State, q.sentNs)
	e.counts.decided(len(outcomes))
	for _, o := range outcomes {
		answered.pop().Waiter.Done(o.result, o.err)
	}
}

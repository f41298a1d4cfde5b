package engine

import (
	"sync"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

type value struct {
	last reading

	// Of the call under way or just answered:
	reads    bool // it only reads
	changed  bool // it writes another value
	next     limiter.State
	notes    limiter.Notes // of the holds of the next state
	nextNs   int64
	patches  script.Patches // of next, for a write later than nextNs
	outcomes []outcome      // of the first jobs
}

func (k *turn) hasValue() *value {
	if k.value == nil {
		k.value = &value{}
	}
	return k.value
}

// found notes a reading, which covers all jobs taken.
func (k *turn) found(r reading) {
	r.large = len(r.Value) > script.LargeBytes
	k.value.last = r
	for j := k.taken.first; j != nil; j = j.next {
		j.covered = true
	}
}

var errContended = &servers.Failed{Reason: servers.Timeout, Text: "others have changed the key each time"}

func (k *turn) inVain() {
	for j := k.taken.first; j != nil; j = j.next {
		j.Waiter.SentInVain(errContended)
	}
}

// decideAt applies the first n jobs to the last reading, at serverNs or at the callers' times.
func (e *Engine) decideAt(k *turn, n int, serverNs int64) (changed bool) {
	v := k.value
	v.nextNs, v.outcomes = serverNs, v.outcomes[:0]
	v.next = limiter.Shifted(v.last.State, 0)
	v.notes.Reset()
	v.next.Notes = &v.notes
	for j := k.taken.first; len(v.outcomes) < n; j = j.next {
		if e.CallersTime {
			v.nextNs = j.NowNs
		}
		o := outcome{err: v.last.Err}
		if o.err == nil {
			o = j.do(&v.next, v.nextNs)
		}
		changed = changed || o.changed
		v.outcomes = append(v.outcomes, o)
	}
	v.next.Notes = nil
	return changed
}

func (e *Engine) change(k *turn) script.Change {
	v := k.value
	return script.ChangeOf(v.last.State, v.next, v.nextNs, e.LastNs(v.nextNs, v.nextNs), func(s *limiter.State, nowNs int64) bool {
		j := k.taken.first
		for i := range v.outcomes {
			if v.outcomes[i].changed && !j.again(s, v.outcomes[i].Quantity, v.nextNs, nowNs) {
				return false
			}
			j = j.next
		}
		return true
	})
}

// slack is for what clocks differ by: a swap that is executed within the timeout is in time.
const slack = 50 * time.Millisecond

// LastNs returns the time until which a swap that is sent at nowNs is executed. It is the time of the
// decision if scripts take that for their own.
func (e *Engine) LastNs(decidedNs, nowNs int64) int64 {
	if e.CallersTime {
		return decidedNs
	}
	return funnel.After(nowNs, uint64(e.Timeout+slack))
}

// answer answers the decided jobs, with onlyWritten only those that are part of the written state.
func (e *Engine) answer(k *turn, onlyWritten bool) {
	v := k.value
	var answered, rest list
	outcomes := v.outcomes[:0]
	for _, o := range v.outcomes {
		j := k.taken.pop()
		if onlyWritten && !j.written(&o) {
			rest.push(j)
			continue
		}
		answered.push(j)
		outcomes = append(outcomes, o)
	}
	k.taken.putBefore(&rest)
	if len(outcomes) == 0 {
		return
	}
	k.bySwap = false
	e.Filter.Learn(k.key, answered.effect(), &v.last.State, k.sentNs)
	e.counts.decided(len(outcomes))
	for _, o := range outcomes {
		answered.pop().Waiter.Done(o.result, o.Quantity, o.err)
	}
}

const (
	// knownFor is for how long a value is taken for the present one.
	knownFor = time.Second
	// seenKeys bounds the number of values, seenBytes the bytes of each with its key.
	seenKeys, seenBytes = 4096, 1 << 10
)

// reading is a key's value and the time of the reply, by the server's clock and by ours.
type reading struct {
	script.Found
	is       bool
	large    bool // more than script.LargeBytes, now or before
	serverNs int64
	at       time.Time
}

// nowNs returns the server's time or a slightly earlier one; a later one would allow too much.
func (r *reading) nowNs() int64 { return prefilter.After(r.serverNs, int64(time.Since(r.at))) }

// seen remembers values of keys without waiting jobs.
type seen struct {
	mu   sync.Mutex // rank 90: guards all below
	keys map[string]reading
}

func (s *seen) add(name string, r reading) {
	if r.large {
		r = reading{large: true, at: r.at}
	}
	if !r.is && !r.large || len(r.Value)+len(name) > seenBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.keys {
		if len(s.keys) < seenKeys {
			break
		}
		delete(s.keys, name)
	}
	s.keys[name] = r
}

func (s *seen) take(name string) (r reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, is := s.keys[name]; is {
		delete(s.keys, name)
		if time.Since(r.at) < knownFor {
			return r
		}
	}
	return reading{}
}

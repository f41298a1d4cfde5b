package history

import (
	"slices"
	"sync"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/store"
)

// Bounds of traces:
const (
	traceEvery  = 5 // samples
	TraceStep   = traceEvery * Interval
	TracePoints = int(Span / TraceStep)

	TracedTop = 100 // keys of each ranking
	maxTraces = 500 // keys
)

// Rates are calls per second.
type Rates struct{ Calls, Limited, Near float32 }

// trace is the course of a key's or a limit's calls.
type trace struct {
	points Course // the newest
	last   int    // number of the newest
}

// add adds a point, after empty ones for those that were left out.
func (t *trace) add(n int, r Rates) {
	if t.last > 0 {
		t.points = append(t.points, make(Course, n-t.last-1)...)
	}
	t.points, t.last = append(t.points, r), n
	t.points = slices.Delete(t.points, 0, max(0, len(t.points)-TracePoints))
}

// Traces keeps the last minutes of the hottest keys and of the named limits.
type Traces struct {
	mu     sync.Mutex // rank 20: guards all below
	now    int        // number of the newest point, from 1
	keys   map[traceKey]*trace
	limits map[string]*limitTrace
}

type traceKey struct {
	db   uint16
	name string
}

type limitTrace struct {
	trace
	allowed, limited, near uint64 // counts of the newest point
}

// Record adds a point: of the keys of both rankings, up to TracedTop each, and of all named limits.
func (t *Traces) Record(requested, limited []topkeys.Entry, all []*namedlimit.Limit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	t.recordKeysLocked(requested, limited)
	known := t.limits
	t.limits = make(map[string]*limitTrace, len(all))
	for _, l := range all {
		c := l.Counts()
		is := known[l.Name]
		if is == nil {
			is = &limitTrace{}
		} else {
			limited := perStep(Denied(&c), is.limited)
			is.add(t.now, Rates{Calls: perStep(c.Allowed, is.allowed) + limited, Limited: limited, Near: perStep(c.Near, is.near)})
		}
		is.allowed, is.limited, is.near = c.Allowed, Denied(&c), c.Near
		t.limits[l.Name] = is
	}
}

// perStep returns the rate of a counter, which begins again if its limit was deleted and defined anew.
func perStep(now, before uint64) float32 {
	return float32(float64(gained(now, before)) / TraceStep.Seconds())
}

func (t *Traces) recordKeysLocked(requested, limited []topkeys.Entry) {
	if t.keys == nil {
		t.keys = map[traceKey]*trace{}
	}
	now := map[traceKey]Rates{}
	for _, e := range limited {
		if !e.Cut {
			now[traceKey{e.DB, e.Name}] = Rates{Calls: float32(e.Recent), Limited: float32(e.Recent)}
		}
	}
	for _, e := range requested {
		if key := (traceKey{e.DB, e.Name}); !e.Cut {
			now[key] = Rates{Calls: float32(e.Recent), Limited: min(now[key].Limited, float32(e.Recent))}
		}
	}
	for key, is := range t.keys {
		if is.last <= t.now-TracePoints || len(t.keys) > maxTraces-len(now) && is.last < t.now-1 {
			delete(t.keys, key)
		}
	}
	for key, r := range now {
		is := t.keys[key]
		if is == nil {
			if len(t.keys) >= maxTraces {
				continue
			}
			is = &trace{}
			t.keys[key] = is
		}
		is.add(t.now, r)
	}
}

// Course is a copy of the newest points of a trace, oldest first.
type Course []Rates

// OfKey returns the course of a key, nil if it is not known.
func (t *Traces) OfKey(key store.Key) Course {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.keys[traceKey{key.DB, string(key.Name)}]
	if is == nil {
		return nil
	}
	return t.courseLocked(is, TracePoints)
}

// OfLimit returns the course of a named limit.
func (t *Traces) OfLimit(name string, points int) Course {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.limits[name]
	if is == nil || is.last == 0 {
		return nil
	}
	return t.courseLocked(&is.trace, points)
}

// courseLocked returns up to a number of points before and now, which are empty after the trace's last.
func (t *Traces) courseLocked(is *trace, points int) Course {
	c := slices.Concat(is.points, make(Course, t.now-is.last))
	return c[max(0, len(c)-points):]
}

// Sums returns the calls of a course.
func (c Course) Sums() (calls, limited, near float64) {
	for _, r := range c {
		calls += float64(r.Calls)
		limited += float64(r.Limited)
		near += float64(r.Near)
	}
	sec := TraceStep.Seconds()
	return calls * sec, limited * sec, near * sec
}

func (c Course) Most() (calls float32) {
	for _, r := range c {
		calls = max(calls, r.Calls)
	}
	return calls
}

// Denied returns the limited calls, with those that a shadow would have limited.
func Denied(c *namedlimit.Counts) uint64 { return c.Limited + c.ShadowLimited }

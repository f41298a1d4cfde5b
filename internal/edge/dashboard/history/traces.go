package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
)

// Bounds of traces:
const (
	traceEvery  = 5 // samples
	traceStep   = traceEvery * sampleInterval
	tracePoints = int(historySpan / traceStep)
	sparkPoints = int(5 * time.Minute / traceStep)

	tracedTop = 100 // keys of each ranking
	maxTraces = 500 // keys
)

// rates are calls per second.
type rates struct{ calls, limited, near float32 }

// trace is the course of a key's or a limit's calls.
type trace struct {
	points course // the newest
	last   int    // number of the newest
}

// add adds a point, after empty ones for those that were left out.
func (t *trace) add(n int, r rates) {
	if t.last > 0 {
		t.points = append(t.points, make(course, n-t.last-1)...)
	}
	t.points, t.last = append(t.points, r), n
	t.points = slices.Delete(t.points, 0, max(0, len(t.points)-tracePoints))
}

// traces keeps the last minutes of the hottest keys and of the named limits, whether or not anybody looks.
type traces struct {
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

// record adds a point.
func (p *Page) record() {
	t := &p.traces
	requested, limited := p.source.Top(topkeys.Requested, tracedTop), p.source.Top(topkeys.Limited, tracedTop)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	t.recordKeysLocked(requested, limited)
	all := p.source.Limits()
	known := t.limits
	t.limits = make(map[string]*limitTrace, len(all))
	for _, l := range all {
		c := l.Counts()
		is := known[l.Name]
		if is == nil {
			is = &limitTrace{}
		} else {
			limited := perStep(denied(&c), is.limited)
			is.add(t.now, rates{calls: perStep(c.Allowed, is.allowed) + limited, limited: limited, near: perStep(c.Near, is.near)})
		}
		is.allowed, is.limited, is.near = c.Allowed, denied(&c), c.Near
		t.limits[l.Name] = is
	}
}

// perStep returns the rate of a counter, which begins again if its limit was deleted and defined anew.
func perStep(now, before uint64) float32 {
	return float32(float64(gained(now, before)) / traceStep.Seconds())
}

func (t *traces) recordKeysLocked(requested, limited []topkeys.Entry) {
	now := map[traceKey]rates{}
	for _, e := range limited {
		if !e.Cut {
			now[traceKey{e.DB, e.Name}] = rates{calls: float32(e.Recent), limited: float32(e.Recent)}
		}
	}
	for _, e := range requested {
		if key := (traceKey{e.DB, e.Name}); !e.Cut {
			now[key] = rates{calls: float32(e.Recent), limited: min(now[key].limited, float32(e.Recent))}
		}
	}
	for key, is := range t.keys {
		if is.last <= t.now-tracePoints || len(t.keys) > maxTraces-len(now) && is.last < t.now-1 {
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

// course is a copy of the newest points of a trace, oldest first.
type course []rates

// ofKey returns the course of a key, nil if it is not known.
func (t *traces) ofKey(key store.Key) course {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.keys[traceKey{key.DB, string(key.Name)}]
	if is == nil {
		return nil
	}
	return t.courseLocked(is, tracePoints)
}

// ofLimit returns the course of a named limit.
func (t *traces) ofLimit(name string, points int) course {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.limits[name]
	if is == nil || is.last == 0 {
		return nil
	}
	return t.courseLocked(&is.trace, points)
}

// courseLocked returns up to a number of points before and now, which are empty after the trace's last.
func (t *traces) courseLocked(is *trace, points int) course {
	c := slices.Concat(is.points, make(course, t.now-is.last))
	return c[max(0, len(c)-points):]
}

// sums returns the calls of a course.
func (c course) sums() (calls, limited, near float64) {
	for _, r := range c {
		calls += float64(r.calls)
		limited += float64(r.limited)
		near += float64(r.near)
	}
	sec := traceStep.Seconds()
	return calls * sec, limited * sec, near * sec
}

func (c course) most() (calls float32) {
	for _, r := range c {
		calls = max(calls, r.calls)
	}
	return calls
}

// svg draws a course of up to points points, the newest at the right: all calls, and those limited.
func (c course) svg(classes string, points int, inside ...g.Node) g.Node {
	const high = 24
	most := float64(max(c.most(), math.SmallestNonzeroFloat32))
	path := func(of func(r rates) float32) g.Node {
		var d strings.Builder
		for i, r := range c {
			x, y := points-len(c)+i, high-int(math.Round(float64(of(r))/most*(high-1)))
			if i == 0 {
				d.WriteString("M" + strconv.Itoa(x) + " " + strconv.Itoa(high))
			}
			d.WriteString("L" + strconv.Itoa(x) + " " + strconv.Itoa(y))
		}
		if len(c) > 0 {
			d.WriteString("V" + strconv.Itoa(high) + "Z")
		}
		return attr("d", d.String())
	}
	return el("svg", class(classes), attr("viewBox", fmt.Sprintf("0 0 %d %d", points-1, high)), attr("preserveAspectRatio", "none"), g.Group(inside),
		el("path", class("calls"), path(func(r rates) float32 { return r.calls })),
		el("path", class("limited"), path(func(r rates) float32 { return r.limited })))
}

// coursePart shows the last minutes of a key or a limit, or why there are none.
func coursePart(t *words.Texts, c course, none string) g.Node {
	if len(c) == 0 {
		return el("p", class("soft"), text(none))
	}
	calls, limited, _ := c.sums()
	span := words.Wait(uint64(len(c)) * uint64(traceStep))
	if lasts := time.Duration(len(c)) * traceStep; lasts >= time.Minute {
		span = t.Span(lasts)
	}
	told := fmt.Sprintf(t.CourseText, span, words.About(calls), words.About(limited))
	return g.Group{
		el("p", text(told)),
		c.svg("course", tracePoints, attr("role", "img"), attr("aria-label", told)),
		el("p", class("axis"), el("span", text(fmt.Sprintf(t.Ago, t.Span(historySpan)))), el("span", text(t.Now))),
	}
}

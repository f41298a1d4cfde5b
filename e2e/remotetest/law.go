// Package remotetest calls cellservers on a remote store from many clients, and judges the allowed calls, for
// tests.
package remotetest

import (
	"cmp"
	"slices"
	"time"
)

// Limit is CL.THROTTLE's arguments.
type Limit struct{ MaxBurst, Count, PeriodSeconds int64 }

// Capacity returns the units of a window beyond the leak.
func (l Limit) Capacity() int64 { return l.MaxBurst + 1 }

// Interval is the time in which a unit leaks.
func (l Limit) Interval() time.Duration {
	return time.Duration(l.PeriodSeconds) * time.Second / time.Duration(l.Count)
}

// Call is a call for one unit as its client saw it, with times since the load began.
type Call struct {
	Sent, Replied time.Duration
	Outcome       Outcome
}

type Outcome uint8

// Outcomes:
const (
	Allowed Outcome = iota
	Limited
	Failed    // an error; it may have been charged
	Uncharged // an error that excludes a charge
)

// Window is a window of time with the calls certainly allowed in it.
type Window struct {
	From, To time.Duration
	Allowed  int64
	Most     int64 // permitted by the limit
}

// clockStep widens windows: servers read whole microseconds.
const clockStep = time.Microsecond

// notYet exceeds any time.
const notYet = 1 << 61

// Worst returns the window with the most allowed calls relative to the permitted ones: beyond them the limit
// is broken.
//
// A call was decided between its sending and its reply. A window counts only calls within it, so a finding is
// wrong whenever they were decided. All windows from a sending to a reply are examined, which suffice.
func (l Limit) Worst(calls []Call) (worst Window) {
	var allowed []Call
	for _, c := range calls {
		if c.Outcome == Allowed {
			allowed = append(allowed, c)
		}
	}
	slices.SortFunc(allowed, func(a, b Call) int { return cmp.Compare(a.Sent, b.Sent) })
	// A window from s to e with n calls has n*interval - (e-s), computed for all s at once as e grows. A
	// call's own s counts from its reply on.
	starts := make([]int64, len(allowed))
	byReply := make([]int, len(allowed))
	for i, c := range allowed {
		starts[i], byReply[i] = int64(c.Sent)-notYet, i
	}
	slices.SortFunc(byReply, func(a, b int) int { return cmp.Compare(allowed[a].Replied, allowed[b].Replied) })
	windows := newMaximum(starts)
	var most int64
	for _, i := range byReply {
		windows.add(i, int64(l.Interval()))
		windows.addAt(i, int64(l.Interval())+notYet)
		at, value := windows.max()
		if excess := value - int64(allowed[i].Replied); worst.To == 0 || excess > most {
			most = excess
			worst = Window{From: allowed[at].Sent, To: allowed[i].Replied}
		}
	}
	for _, c := range allowed {
		if c.Sent >= worst.From && c.Replied <= worst.To {
			worst.Allowed++
		}
	}
	worst.Most = l.Capacity() + int64((worst.To-worst.From+clockStep)/l.Interval())
	return worst
}

// Ideal returns the number of calls allowed by one limiter that decides at their sending.
func (l Limit) Ideal(calls []Call) (allowed int64) {
	sent := make([]time.Duration, len(calls))
	for i, c := range calls {
		sent[i] = c.Sent
	}
	slices.Sort(sent)
	interval := l.Interval()
	var tat time.Duration
	for _, now := range sent {
		next := max(tat, now) + interval
		if next-interval*time.Duration(l.Capacity()) <= now {
			tat = next
			allowed++
		}
	}
	return allowed
}

// Count returns the number of calls with an outcome.
func Count(calls []Call, outcome Outcome) (n int64) {
	for _, c := range calls {
		if c.Outcome == outcome {
			n++
		}
	}
	return n
}

// Package remotetest calls cellservers whose keys are on other machines as many clients do, and judges for tests what these were
// allowed together.
package remotetest

import (
	"cmp"
	"slices"
	"time"
)

// Limit is the arguments of CL.THROTTLE.
type Limit struct{ MaxBurst, Count, PeriodSeconds int64 }

// Capacity is how many units a window may have beyond what leaks in it.
func (l Limit) Capacity() int64 { return l.MaxBurst + 1 }

// Interval is the time in which a unit leaks.
func (l Limit) Interval() time.Duration {
	return time.Duration(l.PeriodSeconds) * time.Second / time.Duration(l.Count)
}

// Call is a call for one unit, as its client has seen it. The times are since the load began, by one monotonic clock.
type Call struct {
	Sent, Replied time.Duration
	Outcome       Outcome
}

// Outcome is a call's reply.
type Outcome uint8

// A reply is one of these.
const (
	Allowed Outcome = iota
	Limited
	Failed    // an error, of what may have been charged
	Uncharged // an error that says that nothing was
)

// Window is a window of time, and how many calls were certainly allowed in it.
type Window struct {
	From, To time.Duration
	Allowed  int64
	Most     int64 // that the limit permits in it
}

// clockStep is how much longer a window is taken to be than it was: servers read whole microseconds.
const clockStep = time.Microsecond

// notYet is more than any time.
const notYet = 1 << 61

// Worst returns the window in which most is allowed in proportion to what the limit permits: a limit is broken if that is more.
//
// Nobody knows when a call was decided, except that it was between its sending and its reply. So a window counts only calls that
// lie in it as a whole: what this finds is wrong whenever they were decided. It looks at all windows that begin when a call was
// sent and end when one was answered, which are all that matter.
func (l Limit) Worst(calls []Call) (worst Window) {
	var allowed []Call
	for _, c := range calls {
		if c.Outcome == Allowed {
			allowed = append(allowed, c)
		}
	}
	slices.SortFunc(allowed, func(a, b Call) int { return cmp.Compare(a.Sent, b.Sent) })
	// For a window from s to e with n calls, n*interval - (e-s) is compared: over all s at once, as e grows. A call's own s
	// counts from its reply on.
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

// Ideal returns how many of the calls one limiter would have allowed that decides about each when it is sent.
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

// Count returns how many calls had an outcome.
func Count(calls []Call, outcome Outcome) (n int64) {
	for _, c := range calls {
		if c.Outcome == outcome {
			n++
		}
	}
	return n
}

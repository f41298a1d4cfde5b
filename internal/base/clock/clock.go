// Package clock returns a server's time: monotonic Unix nanoseconds. A Clock is safe for concurrent use.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// leastSuspension is the shortest correction: no machine suspends for less.
const leastSuspension = 10 * time.Millisecond

// Clock continues the wall clock's time at its start, unaffected by later steps.
type Clock struct {
	start    time.Time // with a monotonic reading
	startNs  int64
	offsetNs atomic.Int64 // added since

	// suspended returns bounds for the time that the machine has been suspended since its boot.
	suspended func() (leastNs, mostNs int64)

	mu          sync.Mutex // rank 90: guards suspendedNs; held from comparing to adding
	suspendedNs int64      // the suspended time included in the clock
}

func New() *Clock { return newClock(suspended) }

func newClock(suspended func() (leastNs, mostNs int64)) *Clock {
	c := &Clock{start: time.Now(), suspended: suspended}
	c.startNs = c.start.UnixNano()
	_, c.suspendedNs = suspended()
	return c
}

// Now returns the time in Unix nanoseconds.
func (c *Clock) Now() int64 { return c.startNs + int64(time.Since(c.start)) + c.offsetNs.Load() }

// Advance sets the clock forward; negative times do nothing.
func (c *Clock) Advance(byNs int64) { c.offsetNs.Add(max(0, byNs)) }

// NotBefore advances the clock to a time reached by an earlier process, and returns the difference, if any.
// Otherwise debts would drain late after a step of the wall clock.
func (c *Clock) NotBefore(ns int64) (offsetNs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsetNs = max(0, ns-c.Now())
	c.Advance(offsetNs)
	return offsetNs
}

// SetTo sets the clock by another server's, also back, where it is ahead by more than a delay explains. It
// is never set before a time given.
func (c *Clock) SetTo(ns int64) {
	const delay = int64(50 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := c.Now() - ns; ahead < 0 || ahead > delay {
		c.offsetNs.Add(-ahead)
	}
}

// CatchUp advances the clock by the suspension since New or the last call, and returns it: Go's monotonic
// clock and the funnels stood still.
func (c *Clock) CatchUp() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	leastNs, _ := c.suspended() // the lower bound, so that imprecision never advances the clock
	ns := leastNs - c.suspendedNs
	if ns < int64(leastSuspension) {
		return 0
	}
	c.suspendedNs = leastNs
	c.Advance(ns)
	return time.Duration(ns)
}

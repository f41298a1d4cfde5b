// Package clock tells a server's time: Unix nanoseconds that never go back. A Clock is safe for concurrent use.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// leastSuspension is worth a correction: no machine sleeps for less.
const leastSuspension = 10 * time.Millisecond

// Clock goes on from the wall clock's time at its start, whose later steps do not reach it.
type Clock struct {
	start    time.Time // with a monotonic reading
	startNs  int64
	offsetNs atomic.Int64 // that was added since

	// suspended returns the bounds within which the time lies that the machine was suspended for since it was booted.
	suspended func() (leastNs, mostNs int64)

	mu          sync.Mutex // guards suspendedNs, and is held by whoever compares before adding to the offset
	suspendedNs int64      // of that time, what the clock contains
}

// New returns a Clock that starts now.
func New() *Clock { return newClock(suspended) }

func newClock(suspended func() (leastNs, mostNs int64)) *Clock {
	c := &Clock{start: time.Now(), suspended: suspended}
	c.startNs = c.start.UnixNano()
	_, c.suspendedNs = suspended()
	return c
}

// Now returns the time in Unix nanoseconds.
func (c *Clock) Now() int64 { return c.startNs + int64(time.Since(c.start)) + c.offsetNs.Load() }

// Advance sets the clock forward. By a negative time, it does nothing.
func (c *Clock) Advance(byNs int64) { c.offsetNs.Add(max(0, byNs)) }

// NotBefore sets the clock to a time that it had reached in an earlier process, unless it is past that already, and returns
// by how much it moved. Where the wall clock went back in between, debts would otherwise take that much longer to drain.
func (c *Clock) NotBefore(ns int64) (offsetNs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsetNs = max(0, ns-c.Now())
	c.Advance(offsetNs)
	return offsetNs
}

// CatchUp sets the clock forward by the time that the machine was suspended for since New or the last call, and returns
// that time: Go's monotonic clock stands still meanwhile, and funnels do not drain.
func (c *Clock) CatchUp() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	leastNs, _ := c.suspended() // so that what a reading lacks in precision never sets the clock forward
	ns := leastNs - c.suspendedNs
	if ns < int64(leastSuspension) {
		return 0
	}
	c.suspendedNs = leastNs
	c.Advance(ns)
	return time.Duration(ns)
}

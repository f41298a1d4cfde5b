// Package often limits log lines about frequent events: the first at once and then a count every minute, or a
// number a second. A Counter and a Rate are safe for concurrent use.
package often

import (
	"sync"
	"time"
)

const interval = time.Minute

// Counter counts events. The zero value is ready.
type Counter struct {
	mu     sync.Mutex // rank 95: guards all below
	begun  bool       // a line was written
	lastNs int64      // of the last line
	since  int        // events since then
}

// Due counts an event, and returns the count since the last line if another is due, else 0. nowNs is
// monotonic.
func (c *Counter) Due(nowNs int64) (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since++
	if c.begun && nowNs-c.lastNs < int64(interval) {
		return 0
	}
	count, c.since = c.since, 0
	c.begun, c.lastNs = true, nowNs
	return count
}

// Rate counts events within a second. The zero value is ready.
type Rate struct {
	mu     sync.Mutex // rank 95: guards all below
	second int64
	count  int
}

// Allow counts an event if no more than perSecond occur in nowNs's second, and reports that. nowNs is
// monotonic.
func (r *Rate) Allow(nowNs int64, perSecond int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := nowNs / int64(time.Second); second != r.second {
		r.second, r.count = second, 0
	}
	if r.count >= perSecond {
		return false
	}
	r.count++
	return true
}

// Package often keeps what may happen often from filling the log: the first time is worth a line, and then what came
// since, once a minute; or so many a second. A Counter and a Rate are safe for concurrent use.
package often

import (
	"sync"
	"time"
)

const interval = time.Minute

// Counter counts what happens. The zero value has counted nothing.
type Counter struct {
	mu     sync.Mutex // guards all below
	begun  bool       // there was a line
	lastNs int64      // when the last line was due
	since  int        // happened since then
}

// Due counts one more, and returns how many there were since the last line if it is time for another, else 0. The
// time is in nanoseconds, of a clock that does not go back.
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

// Rate counts what happens within a second. The zero value has counted nothing.
type Rate struct {
	mu     sync.Mutex // guards all below
	second int64
	count  int
}

// Allow reports whether one more may happen in the second of nowNs, if that is at most perSecond, and then counts it. The
// time is in nanoseconds, of a clock that does not go back.
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

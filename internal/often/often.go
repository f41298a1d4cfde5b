// Package often keeps what may happen often from filling the log: the first time is worth a line, and then what came
// since, once a minute. A Counter is safe for concurrent use.
package often

import (
	"sync"
	"time"
)

const interval = time.Minute

// Counter counts what happens. The zero value has counted nothing.
type Counter struct {
	mu    sync.Mutex // guards all below
	last  time.Time  // of the last line
	since int        // happened since then
}

// Due counts one more, and returns how many there were since the last line if it is time for another, else 0.
func (c *Counter) Due() (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since++
	now := time.Now()
	if !c.last.IsZero() && now.Sub(c.last) < interval {
		return 0
	}
	count, c.since = c.since, 0
	c.last = now
	return count
}

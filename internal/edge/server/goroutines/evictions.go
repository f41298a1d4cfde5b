package goroutines

import (
	"sync"
	"sync/atomic"
)

// evictions has connections that grow wait until those have ended that were closed for their memory: these are counted no
// more, but hold it until their goroutine has its turn, which many that grow would put off.
type evictions struct {
	open atomic.Int32 // connections that are to end

	mu    sync.Mutex // held to wait, and to change open
	ended sync.Cond  // on mu
}

func (e *evictions) add(n int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open.Add(n)
	e.ended.Broadcast()
}

// await waits until none is open, or the connection that waits is one of them.
func (e *evictions) await(c *connection) {
	if e.open.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.open.Load() > 0 && !c.isKilled() {
		e.ended.Wait()
	}
}

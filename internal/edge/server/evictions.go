package server

import (
	"sync"
	"sync/atomic"
)

// evictions makes growing connections wait until evicted ones have ended: an evicted one no longer counts but
// holds its memory until its goroutine runs, which many growing connections would put off.
type evictions struct {
	open atomic.Int32 // evicted connections that have not ended

	mu    sync.Mutex // taken to wait, and to change open; a leaf
	ended sync.Cond  // on mu
}

func (e *evictions) add(n int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open.Add(n)
	e.ended.Broadcast()
}

// await waits until none is open, or c itself is killed.
func (e *evictions) await(c *goroutineConn) {
	if e.open.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.open.Load() > 0 && !c.isKilled() {
		e.ended.Wait()
	}
}

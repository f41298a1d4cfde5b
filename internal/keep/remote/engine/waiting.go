package engine

import (
	"sync"
	"sync/atomic"
)

// What waits is bounded: beyond this, requests are refused.
const (
	MaxWaiting      = 1 << 17
	maxWaitingBytes = 64 << 20 // of names
	// serverPart is that those for one server of a cluster may be one of so many parts of them, or one that
	// hangs would have requests refused that are none of its.
	serverPart = 2
)

// waiting counts what waits.
type waiting struct{ requests, bytes atomic.Int64 } // the bytes are of names

// add adds to what waits, and reports whether that is more than one of so many parts of what may.
func (w *waiting) add(requests int64, name []byte, part int64) (tooMany bool) {
	n, bytes := w.requests.Add(requests), w.bytes.Add(requests*int64(len(name)))
	return n > MaxWaiting/part || bytes > maxWaitingBytes/part
}

// Enter counts a request that waits, for a server's sender if it is known. If that is one too many, it says
// so.
func (e *Engine) Enter(name []byte, s *Sender) (tooMany string) {
	if e.waiting.add(1, name, 1) {
		tooMany = "too many requests wait for the servers"
	}
	if s != nil && s.waiting.add(1, name, serverPart) && e.Pool.Clustered() {
		tooMany = "too many requests wait for " + s.server.Addr
	}
	return tooMany
}

// Leave counts a request that waits no more.
func (e *Engine) Leave(name []byte, s *Sender) {
	e.waiting.add(-1, name, 1)
	if s != nil {
		s.waiting.add(-1, name, serverPart)
	}
}

// working counts goroutines, and what will be one.
type working struct {
	mu   sync.Mutex // guards all below
	n    int
	idle sync.Cond
}

func (w *working) begin() {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
}

func (w *working) end() {
	w.mu.Lock()
	if w.n--; w.n == 0 {
		w.idle.Broadcast()
	}
	w.mu.Unlock()
}

// WaitIdle returns when nothing is under way.
func (e *Engine) WaitIdle() {
	w := &e.working
	w.mu.Lock()
	for w.n > 0 {
		w.idle.Wait()
	}
	w.mu.Unlock()
}

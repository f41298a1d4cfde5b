package engine

import (
	"sync"
	"sync/atomic"
)

// Bounds of waiting requests: beyond them requests are refused.
const (
	MaxWaiting      = 1 << 17
	maxWaitingBytes = 64 << 20 // of names
	// serverPart bounds those of one server of a cluster to a half, so that one that hangs does not use up all.
	serverPart = 2
)

// waiting counts requests, and the bytes of their names.
type waiting struct{ requests, bytes atomic.Int64 }

// add reports whether the sum exceeds the bounds divided by part.
func (w *waiting) add(requests int64, name []byte, part int64) (tooMany bool) {
	n, bytes := w.requests.Add(requests), w.bytes.Add(requests*int64(len(name)))
	return n > MaxWaiting/part || bytes > maxWaitingBytes/part
}

// Enter counts a waiting request, also at its sender if that is known. It returns an error text if there are too many.
func (e *Engine) Enter(name []byte, s *Sender) (tooMany string) {
	if e.waiting.add(1, name, 1) {
		tooMany = "too many requests wait for the servers"
	}
	if s != nil && s.waiting.add(1, name, serverPart) && e.Pool.Clustered() {
		tooMany = "too many requests wait for " + s.server.Addr
	}
	return tooMany
}

// Leave undoes Enter.
func (e *Engine) Leave(name []byte, s *Sender) {
	e.waiting.add(-1, name, 1)
	if s != nil {
		s.waiting.add(-1, name, serverPart)
	}
}

// working counts goroutines, running and scheduled.
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

// WaitIdle returns once no call is under way.
func (e *Engine) WaitIdle() {
	w := &e.working
	w.mu.Lock()
	for w.n > 0 {
		w.idle.Wait()
	}
	w.mu.Unlock()
}

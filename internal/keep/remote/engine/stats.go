package engine

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

type counts struct {
	asked, joined, scripts, pipelines atomic.Uint64

	resent servers.ByReason
}

// decided counts n jobs decided by one call.
func (c *counts) decided(n int) {
	if n > 0 {
		c.asked.Add(uint64(n))
		c.joined.Add(uint64(n - 1))
	}
}

func (e *Engine) Stats() store.RemoteStats {
	c := &e.counts
	st := store.RemoteStats{
		Asked: c.asked.Load(), Joined: c.joined.Load(), Scripts: c.scripts.Load(),
		Pipelines: c.pipelines.Load(), Resent: c.resent.All(),
		Waiting: int(e.waiting.requests.Load()), WaitingBytes: int(e.waiting.bytes.Load()),
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, s := range e.senders {
		st.Servers = append(st.Servers, s.stats())
	}
	slices.SortFunc(st.Servers, func(a, b store.ServerStats) int { return strings.Compare(a.Addr, b.Addr) })
	return st
}

func (s *Sender) stats() store.ServerStats {
	st := store.ServerStats{Addr: s.server.Addr, RoundTripNs: s.roundTripNs.Load()}
	for _, l := range []*lane{&s.small, &s.large} {
		l.mu.Lock()
		st.Queued += l.ready
		st.InFlight += l.flying
		l.mu.Unlock()
	}
	return st
}

// Bounds of waiting requests: beyond them requests are refused.
const (
	MaxWaiting      = 1 << 17
	maxWaitingBytes = 64 << 20 // of names
	// serverPart bounds those of one server of a cluster to a half, so that one that hangs does not use up
	// all.
	serverPart = 2
)

// waiting counts requests, and the bytes of their names.
type waiting struct{ requests, bytes atomic.Int64 }

// add reports whether the sum exceeds the bounds divided by part.
func (w *waiting) add(requests int64, name []byte, part int64) (tooMany bool) {
	n, bytes := w.requests.Add(requests), w.bytes.Add(requests*int64(len(name)))
	return n > MaxWaiting/part || bytes > maxWaitingBytes/part
}

// Enter counts a waiting request, also at its sender if that is known. It returns an error text if there are
// too many.
func (e *Engine) Enter(name []byte, s *Sender) (tooMany string) {
	if e.waiting.add(1, name, 1) {
		tooMany = "too many requests wait for the servers"
	}
	if s != nil && s.waiting.add(1, name, serverPart) && e.Pool.Clustered() {
		tooMany = "too many requests wait for " + s.server.Addr
	}
	return tooMany
}

func (e *Engine) Leave(name []byte, s *Sender) {
	e.waiting.add(-1, name, 1)
	if s != nil {
		s.waiting.add(-1, name, serverPart)
	}
}

// working counts goroutines, running and scheduled.
type working struct {
	mu   sync.Mutex // rank 90: guards all below
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

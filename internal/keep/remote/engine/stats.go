package engine

import (
	"slices"
	"strings"
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

// Stats returns the figures that the engine knows.
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

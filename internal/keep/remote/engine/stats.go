package engine

import (
	"slices"
	"strings"
	"sync/atomic"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

type Stats struct {
	Asked     uint64 // jobs sent to a server
	Joined    uint64 // of these, beyond the first of each script
	Scripts   uint64 // sent
	Pipelines uint64

	Resent map[store.Reason]uint64 // scripts, by the reason why they were not executed

	Keys         int // with waiting jobs
	Waiting      int // requests entered and not left
	WaitingBytes int // of their names
	Servers      []store.ServerStats
}

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

func (e *Engine) Stats() Stats {
	c := &e.counts
	st := Stats{
		Asked: c.asked.Load(), Joined: c.joined.Load(), Scripts: c.scripts.Load(),
		Pipelines: c.pipelines.Load(), Resent: c.resent.All(), Keys: e.table.keys(),
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

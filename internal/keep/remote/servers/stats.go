package servers

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// ServerStats is what has come of a server.
type ServerStats struct {
	Addr     string
	State    string            // of its circuit breaker: closed, half-open or open
	Error    string            // the last one that counted against it; empty while it answers
	Loaded   uint64            // scripts, as the server did not know them
	Redirect uint64            // calls that it has sent to another server
	Failed   map[Reason]uint64 // calls; each try counts
	Conns    int               // connections that are open
}

// ByReason counts by reasons.
type ByReason [13]atomic.Uint64 // in the order of Reasons

// Add counts one.
func (c *ByReason) Add(r Reason) { c[slices.Index(Reasons(), r)].Add(1) }

// All returns what was counted.
func (c *ByReason) All() map[Reason]uint64 {
	m := map[Reason]uint64{}
	for i, r := range Reasons() {
		m[r] = c[i].Load()
	}
	return m
}

type counts struct {
	loaded, redirected atomic.Uint64
	failed             ByReason
}

func (c *counts) fail(f *Failed) {
	c.failed.Add(f.Reason)
	if f.Redirect != nil {
		c.redirected.Add(1)
	}
}

// Stats returns what has come of each server that is known, by address.
func (p *Pool) Stats() []ServerStats {
	var all []ServerStats
	for _, s := range p.servers() {
		stats := ServerStats{Addr: s.Addr, State: s.breaker.State().String(), Error: s.reasonOpen(),
			Loaded: s.counts.loaded.Load(), Redirect: s.counts.redirected.Load(), Failed: s.counts.failed.All(),
			Conns: int(s.Client().PoolStats().TotalConns)}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b ServerStats) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

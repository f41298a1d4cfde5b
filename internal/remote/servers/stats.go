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

type counts struct {
	loaded, redirected atomic.Uint64
	failed             [reasons]atomic.Uint64
}

const reasons = 13

func (c *counts) fail(f *Failed) {
	c.failed[slices.Index(Reasons(), f.Reason)].Add(1)
	if f.Redirect != nil {
		c.redirected.Add(1)
	}
}

// Stats returns what has come of each server that is known, by address.
func (p *Pool) Stats() []ServerStats {
	var all []ServerStats
	for _, s := range p.servers() {
		stats := ServerStats{Addr: s.Addr, State: s.breaker.State().String(), Error: s.reasonOpen(),
			Loaded: s.counts.loaded.Load(), Redirect: s.counts.redirected.Load(), Failed: map[Reason]uint64{},
			Conns: int(s.Client().PoolStats().TotalConns)}
		for i, r := range Reasons() {
			stats.Failed[r] = s.counts.failed[i].Load()
		}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b ServerStats) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

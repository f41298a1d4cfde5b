package servers

import (
	"cmp"
	"slices"
	"sync/atomic"

	"cellserver/internal/store"
)

// ByReason counts by reasons.
type ByReason [13]atomic.Uint64 // in the order of Reasons

func (c *ByReason) Add(r store.Reason) { c[slices.Index(Reasons(), r)].Add(1) }

func (c *ByReason) All() map[store.Reason]uint64 {
	m := map[store.Reason]uint64{}
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

// Stats returns the statistics of all servers, by address.
func (p *Pool) Stats() []store.ServerStats {
	var all []store.ServerStats
	for _, s := range p.servers() {
		stats := store.ServerStats{Addr: s.Addr, Circuit: s.breaker.State().String(), Error: s.reasonOpen(),
			Loaded: s.counts.loaded.Load(), Redirected: s.counts.redirected.Load(), Failed: s.counts.failed.All(),
			Conns: int(s.Client().PoolStats().TotalConns)}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b store.ServerStats) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

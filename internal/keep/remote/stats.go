package remote

import (
	"sync/atomic"

	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Stats is what a Store has counted since it was opened, and what waits.
type Stats struct {
	Requests    uint64 // that came
	Asked       uint64 // of these, that were sent to a server
	Joined      uint64 // of these, beyond the first of each script
	Scripts     uint64 // that were sent
	Pipelines   uint64
	Prefiltered uint64 // requests that were denied by a TAT which was read lately
	Leased      uint64 // requests that were allowed from units taken ahead
	Late        uint64 // answers to requests that the policy had decided

	Resent map[servers.Reason]uint64 // scripts, by why they had not been executed
	Failed map[servers.Reason]uint64 // requests that were left to the policy, or failed
	Policy map[Policy]Decided        // requests that it has decided

	Waiting      int // requests that are not answered
	WaitingBytes int // of their names
	Servers      []ServerStats
	Lease        ahead.Stats
}

// ByPolicy returns how many requests the policy has decided.
func (st *Stats) ByPolicy() (n uint64) {
	for _, decided := range st.Policy {
		n += decided.Total()
	}
	return n
}

// Decided is requests by what the policy has answered.
type Decided struct{ Allowed, Limited, Failed uint64 }

// Total is all of them.
func (d Decided) Total() uint64 { return d.Allowed + d.Limited + d.Failed }

// ServerStats is what is known of requests to a server.
type ServerStats = engine.ServerStats

// counts is what a Store counts.
type counts struct {
	requests, late atomic.Uint64

	failed servers.ByReason
	policy [policies]decided

	granted, refused atomic.Uint64 // units
	outcomes         [limiter.Kinds]struct{ allowed, limited atomic.Uint64 }
}

// decided counts requests by their answers.
type decided struct{ allowed, limited, failed atomic.Uint64 }

func (d *decided) add(q *store.Request) {
	switch {
	case q.Err != nil:
		d.failed.Add(1)
	case q.Result.Limited:
		d.limited.Add(1)
	default:
		d.allowed.Add(1)
	}
}

func (d *decided) all() Decided {
	return Decided{Allowed: d.allowed.Load(), Limited: d.limited.Load(), Failed: d.failed.Load()}
}

// outcome counts a request for units.
func (c *counts) outcome(kind limiter.Kind, quantity int64, limited bool) {
	units := store.CountedUnits(quantity)
	if limited {
		c.outcomes[kind].limited.Add(1)
		c.refused.Add(units)
		return
	}
	c.outcomes[kind].allowed.Add(1)
	c.granted.Add(units)
}

// UpdateStats implements store.Store. What the policy has decided is not among it.
func (s *Store) UpdateStats(st *store.Stats) {
	for kind := range s.counts.outcomes {
		allowed, limited := s.counts.outcomes[kind].allowed.Load(), s.counts.outcomes[kind].limited.Load()
		st.Allowed += allowed
		st.Limited += limited
		st.Outcomes[kind].Allowed += allowed
		st.Outcomes[kind].Limited += limited
	}
	granted := s.counts.granted.Load()
	st.Granted += granted
	st.Requested += granted + s.counts.refused.Load()
}

// Stats returns what the store has counted.
func (s *Store) Stats() Stats {
	c, e, k := &s.counts, s.engine.Stats(), s.known.Stats()
	st := Stats{
		Requests: c.requests.Load(), Asked: e.Asked, Joined: e.Joined, Scripts: e.Scripts, Pipelines: e.Pipelines,
		Prefiltered: k.Prefiltered, Leased: k.Leased, Late: c.late.Load(),
		Resent: e.Resent, Failed: c.failed.All(), Policy: map[Policy]Decided{},
		Waiting: e.Waiting, WaitingBytes: e.WaitingBytes, Servers: e.Servers, Lease: k.Lease,
	}
	for p := range policies {
		st.Policy[p] = c.policy[p].all()
	}
	return st
}

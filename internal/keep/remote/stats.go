package remote

import (
	"sync/atomic"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

type counts struct {
	requests, late atomic.Uint64

	failed servers.ByReason
	policy [store.Fallbacks]decided

	granted, refused atomic.Uint64 // units
	cut              atomic.Uint64 // debits cut off
	outcomes         [limiter.Kinds]struct{ allowed, limited atomic.Uint64 }
}

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

func (d *decided) all() store.Decided {
	return store.Decided{Allowed: d.allowed.Load(), Limited: d.limited.Load(), Failed: d.failed.Load()}
}

// outcome counts a request for units.
func (c *counts) outcome(o limiter.Outcome) {
	if o.Cut {
		c.cut.Add(1)
	}
	units := store.CountedUnits(o.Quantity)
	switch {
	case !o.Requests:
	case o.Limited:
		c.outcomes[o.Kind].limited.Add(1)
		c.refused.Add(units)
	default:
		c.outcomes[o.Kind].allowed.Add(1)
		c.granted.Add(units)
	}
}

// UpdateStats implements store.Store. It leaves out decisions of the policy.
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
	st.DebitsCut += s.counts.cut.Load()
	st.Requested += granted + s.counts.refused.Load()
}

func (s *Store) Stats() store.RemoteStats {
	c, st := &s.counts, s.engine.Stats()
	st.Requests, st.Prefiltered, st.Late = c.requests.Load(), s.filter.Denied(), c.late.Load()
	st.Failed, st.Policy = c.failed.All(), map[store.Fallback]store.Decided{}
	for p := range store.Fallbacks {
		st.Policy[p] = c.policy[p].all()
	}
	return st
}

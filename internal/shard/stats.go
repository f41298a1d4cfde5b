package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// UpdateStats adds the store's figures to st, under one shard's lock at a time for a few loads.
func (s *Store) UpdateStats(st *store.Stats) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.updateStatsLocked(st)
		sh.mu.Unlock()
	}
	st.MaxBytes += int(s.budget.maxBytes.Load())
}

func (sh *shard) updateStatsLocked(st *store.Stats) {
	for _, t := range sh.tables() {
		st.Keys += t.count
		st.Slots += t.made * segmentBuckets * t.slots()
		st.Bytes += t.bytes()
	}
	st.NameBytes += sh.inline.count*inlineBytes + sh.long.chunks.bytes() + sh.long.large.names
	for kind, n := range sh.counts.outcomes {
		st.Allowed += n.Allowed
		st.Limited += n.Limited
		st.Outcomes[kind].Allowed += n.Allowed
		st.Outcomes[kind].Limited += n.Limited
	}
	st.Requested += sh.counts.granted + sh.counts.refused
	st.Granted += sh.counts.granted
	st.Expired += sh.expired
	st.Swept += sh.swept
	st.Evicted += sh.evicted
	st.Refused += sh.refused
}

// counts are the outcomes of requests.
type counts struct {
	granted  uint64                        // units allowed
	refused  uint64                        // units limited
	outcomes [limiter.Kinds]store.Outcomes // of requests; a plain funnel's are near the rest of its changes
}

func (c *counts) add(kind limiter.Kind, quantity int64, limited bool) {
	units := store.CountedUnits(quantity)
	if limited {
		c.outcomes[kind].Limited++
		c.refused += units
		return
	}
	c.outcomes[kind].Allowed++
	c.granted += units
}

// count counts a step if it requested units.
func (c *counts) count(o limiter.Outcome) {
	if o.Requests {
		c.add(o.Kind, o.Quantity, o.Limited)
	}
}

func (c *counts) merge(other *counts) {
	for kind, n := range other.outcomes {
		c.outcomes[kind].Allowed += n.Allowed
		c.outcomes[kind].Limited += n.Limited
	}
	c.granted += other.granted
	c.refused += other.refused
}

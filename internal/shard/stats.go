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
	s.commonStats(st)
}

// commonStats adds the figures that shards have in common.
func (s *Store) commonStats(st *store.Stats) {
	s.holds.AddTo(st)
	st.MaxBytes += int(s.budget.maxBytes.Load())
	st.Values.MaxBytes += int(s.valueBudget.maxBytes.Load())
}

func (sh *shard) updateStatsLocked(st *store.Stats) {
	for _, t := range sh.tables() {
		st.Keys += t.count
		st.Slots += t.made * segmentBuckets * t.slots()
		st.NameBytes += t.chunks.bytes() + t.large.names
		if t.values {
			st.Values.Keys += t.count
			st.Values.Endless += t.endless
			st.Values.Bytes += t.bytes()
			st.Values.Evicted += t.evicted
			st.Values.Refused += t.refused
			continue
		}
		st.Bytes += t.bytes()
		st.Evicted += t.evicted
		st.Refused += t.refused
	}
	st.NameBytes += sh.inline.count*inlineBytes + sh.packed.count*packedBytes
	for kind, n := range sh.counts.outcomes {
		st.Allowed += n.Allowed
		st.Limited += n.Limited
		st.Outcomes[kind].Allowed += n.Allowed
		st.Outcomes[kind].Limited += n.Limited
	}
	st.Requested += sh.counts.granted + sh.counts.refused
	st.Granted += sh.counts.granted
	st.DebitsCut += sh.counts.cut
	st.Expired += sh.expired
	st.Swept += sh.swept
}

type counts struct {
	granted  uint64                        // units allowed
	refused  uint64                        // units limited
	cut      uint64                        // debits cut off
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
	if o.Cut {
		c.cut++
	}
}

func (c *counts) merge(other *counts) {
	for kind, n := range other.outcomes {
		c.outcomes[kind].Allowed += n.Allowed
		c.outcomes[kind].Limited += n.Limited
	}
	c.granted += other.granted
	c.refused += other.refused
	c.cut += other.cut
}

const (
	pointerBytes     = 8  // of a segment's pointer in the directory
	sliceHeaderBytes = 24 // of a large record
)

// MemoryUsage implements store.Walker. The bytes, rounded up, are an equal share of the segment and its
// directory entries,
//
//	(4096 + 8 * places) / entries
//
// and for a long key or a payload a share of the segment's arena by the record's length,
//
//	1024 * chunks * record / all records in it
//
// or its own buffer. The keys of a segment thus pay for its free space and garbage, and the sum over all keys
// is the tables' size without free chunks.
func (s *Store) MemoryUsage(nowNs int64, key store.Key) (bytes int, ok bool) {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.memoryUsageLocked(nowNs, k, &key)
}

func (sh *shard) memoryUsageLocked(nowNs int64, k keyRef, key *store.Key) (bytes int, ok bool) {
	t, b, slot := sh.find(k, key)
	if b == nil || b.tatNs(slot) <= nowNs {
		return 0, false
	}
	seg := t.segmentOf(k.hash)
	places := 1 << (t.depth - seg.depth)
	return ceilDiv(segmentBytes+pointerBytes*places, int(seg.used)) + t.longShare(seg, b, slot), true
}

// longShare returns an entry's bytes beyond its slot.
func (t *table) longShare(seg *segment, b *bucket, slot int) int {
	n := t.entryBytes(b, slot)
	switch {
	case !t.long:
		return 0
	case b.place(slot) == placeLarge:
		return n + sliceHeaderBytes
	}
	return ceilDiv(seg.arena.length()*chunkBytes*n, seg.arena.liveBytes())
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

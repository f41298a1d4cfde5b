package shard

// Stats is what the store has counted since it was made, and what it holds.
type Stats struct {
	Keys    int // entries, those included that expired since the sweep was last there
	Slots   int // that there are for entries, those in use included
	Bytes   int // of the tables, with long keys and directories
	Allowed uint64
	Denied  uint64
	Asked   uint64 // units; see counts.add
	Granted uint64
	Expired uint64 // entries that the sweep removed
	Swept   uint64 // segments that it looked at
}

// UpdateStats adds the store's figures to st. It holds one shard's lock at a time, for a few loads.
func (s *Store) UpdateStats(st *Stats) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.updateStatsLocked(st)
		sh.mu.Unlock()
	}
}

func (sh *shard) updateStatsLocked(st *Stats) {
	segments := sh.table.segments()
	st.Keys += sh.table.count
	st.Slots += segments * segmentSlots
	st.Bytes += segments*segmentBytes + len(sh.table.directory)*pointerBytes + sh.table.arenas.totalBytes()
	st.Allowed += sh.counts.allowed
	st.Denied += sh.counts.denied
	st.Asked += sh.counts.granted + sh.counts.refused
	st.Granted += sh.counts.granted
	st.Expired += sh.expired
	st.Swept += sh.swept
}

// counts is what requests came to.
type counts struct {
	allowed uint64 // requests that passed
	denied  uint64 // requests that were limited
	granted uint64 // units that those asked for that passed
	refused uint64 // units that the others asked for
}

// maxCountedUnits is the most that one request counts for, so that no client can bring the sums around to 0.
const maxCountedUnits = 1 << 32

// add counts a request. One that gives units back asks for none.
func (c *counts) add(quantity int64, limited bool) {
	units := uint64(min(max(quantity, 0), maxCountedUnits))
	if limited {
		c.denied++
		c.refused += units
		return
	}
	c.allowed++
	c.granted += units
}

func (c *counts) merge(other *counts) {
	c.allowed += other.allowed
	c.denied += other.denied
	c.granted += other.granted
	c.refused += other.refused
}

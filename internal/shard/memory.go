package shard

import "cellserver/internal/store"

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

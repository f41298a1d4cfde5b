package shard

import "cellserver/internal/store"

const (
	pointerBytes     = 8  // of a segment, in the directory
	sliceHeaderBytes = 24 // of a record that stands alone
)

// MemoryUsage implements store.Walker. The bytes are rounded up.
//
// That is its equal share of its segment, with the segment's places in the directory:
//
//	(4096 + 8 * places) / entries
//
// and for a long key, or one with a payload, also its share, by its record's length, of its segment's arena:
//
//	1024 * chunks * record / all records in it
//
// or its own buffer, if it has one. So the keys that share a segment pay for the room and the garbage in it, a lone key for
// all of it, and the sum over all keys is what the tables take, but for the chunks that are in no use.
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

// longShare returns how many bytes an entry costs beside its slot.
func (t *table) longShare(seg *segment, b *bucket, slot int) int {
	n := t.entryBytes(b, slot)
	switch {
	case !t.long:
		return 0
	case b.place(slot) == placeAlone:
		return n + sliceHeaderBytes
	}
	return ceilDiv(seg.arena.length()*chunkBytes*n, seg.arena.liveBytes())
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

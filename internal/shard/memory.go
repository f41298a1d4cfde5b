package shard

import "cellserver/internal/store"

const (
	pointerBytes     = 8  // of a segment, in the directory
	sliceHeaderBytes = 24 // of an arena, among the arenas
)

// MemoryUsage implements store.Walker. The bytes are rounded up.
//
// That is its equal share of its segment, with the segment's places in the directory:
//
//	(4096 + 8 * places) / entries
//
// and for a long key also its share, by what is stored of it, of the arena that it stands in:
//
//	(arena's capacity + 24) * bytes stored / bytes stored of all keys in it
//
// So the keys that share a segment pay for the room and the garbage in it, a lone key for all of it, and the sum
// over all keys is what the tables take.
func (s *Store) MemoryUsage(nowNs int64, key store.Key) (bytes int, ok bool) {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.memoryUsageLocked(nowNs, k, &key)
}

func (sh *shard) memoryUsageLocked(nowNs int64, k keyRef, key *store.Key) (bytes int, ok bool) {
	t := &sh.table
	b, slot := t.find(k, key)
	if b == nil || b.tatNs[slot] <= nowNs {
		return 0, false
	}
	seg := t.segmentOf(k.hash)
	places := 1 << (t.depth - seg.depth)
	return ceilDiv(segmentBytes+pointerBytes*places, int(seg.used)) + t.arenaShare(seg, b, slot), true
}

// arenaShare returns how many bytes of arenas the key in a slot costs.
func (t *table) arenaShare(seg *segment, b *bucket, slot int) int {
	switch code := b.code(slot); {
	case !isLong(code):
		return 0
	case code&codeMask == codeAlone:
		return cap(t.arenas.bufs[b.key[slot][1]]) + sliceHeaderBytes
	default:
		capBytes := cap(t.arenas.bufs[seg.arena]) + sliceHeaderBytes
		return ceilDiv(capBytes*t.storedBytesAt(b, slot), t.liveBytes(seg))
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

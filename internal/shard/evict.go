package shard

import (
	"math"
	"slices"

	"cellserver/internal/store"
)

// pins says which keys belong to the transaction that holds a shard's lock, and must not be evicted.
type pins interface {
	holds(hash uint64) bool
}

const (
	// expireEvery is how many evictions of a segment come between two looks for expired entries in all of it: the look
	// takes as long as several inserts.
	expireEvery = 16
	// reclaimSegments is how many segments an insert visits, at the most, to free bytes that it finds none of at its
	// own place. A long key that needs more than they give goes beyond the bound, and the Sweeper evicts for it.
	reclaimSegments = 16
	// garbageShare is the least part of an arena that is freed at a time, so that its keys are not moved for each
	// insert.
	garbageShare = 8
)

// makeRoomLocked evicts what keeps a new key out: of the entries that have expired or, else, of a few near the key's
// place those that would expire soonest. It is false if the key's segment has no slot to give, because it is the
// shard's first or all of its keys are pinned: then the table grows beyond the bound by a segment.
func (sh *shard) makeRoomLocked(k keyRef, key *store.Key, nowNs int64) bool {
	if sh.table.directory == nil {
		return false
	}
	seg := sh.table.segmentOf(k.hash)
	if seg.used >= segmentFull && !sh.freeSlotLocked(seg, k.hash, nowNs) {
		return false
	}
	if k.isLong() {
		sh.freeBytesLocked(seg, k, key, nowNs)
	}
	return true
}

// freeSlotLocked frees a slot in the bucket of a hash. Five entries are as many as Redis samples, and they are in the
// cache. A new entry finds its place in its home bucket, so the segment may become fuller than it does by growing: the
// chains that overflow get no longer.
func (sh *shard) freeSlotLocked(seg *segment, hash uint64, nowNs int64) bool {
	seg.evictions++
	if seg.evictions%expireEvery == 1 && sh.removeExpiredLocked(seg, nowNs) > 0 && seg.used < segmentFull {
		return true
	}
	i := homeOf(hash)
	for range segmentBuckets {
		b := &seg.buckets[i]
		if b.free() < bucketSlots {
			return true
		}
		if slot := sh.soonestLocked(b); slot < bucketSlots {
			sh.evictLocked(seg, b, slot, nowNs)
			return true
		}
		i = nextBucket(i)
	}
	return false
}

// soonestLocked returns the slot of a full bucket's entry that expires first and is not pinned, or bucketSlots.
func (sh *shard) soonestLocked(b *bucket) (soonest int) {
	soonest, soonestNs := bucketSlots, int64(math.MaxInt64)
	for slot := range bucketSlots {
		if b.tatNs[slot] < soonestNs && !sh.pinnedLocked(b, slot) {
			soonest, soonestNs = slot, b.tatNs[slot]
		}
	}
	return soonest
}

func (sh *shard) pinnedLocked(b *bucket, slot int) bool {
	return sh.pins != nil && sh.pins.holds(sh.table.hashAt(b, slot))
}

// evictLocked removes an entry. One that had expired is not counted as evicted.
func (sh *shard) evictLocked(seg *segment, b *bucket, slot int, nowNs int64) {
	if sh.watched != nil {
		sh.watched.lost(sh.table.hashAt(b, slot))
	}
	if b.tatNs[slot] <= nowNs {
		sh.expired++
	} else {
		sh.evicted++
	}
	sh.table.remove(seg, b, slot)
}

// freeBytesLocked makes the bytes of a long key fit: by long keys of its own segment, which expire soonest, and else by
// segments that it merges.
func (sh *shard) freeBytesLocked(seg *segment, k keyRef, key *store.Key, nowNs int64) {
	t, n := &sh.table, storedBytes(key)
	fits := func() bool {
		sh.settleLocked()
		growth := t.arenaGrowth(seg, k.code, n)
		return growth == 0 || sh.budget.fits(growth)
	}
	if fits() {
		return
	}
	if k.code&codeMask == codeInArena && seg.arena != 0 {
		sh.freeInArenaLocked(seg, max(n, len(t.arenas.bufs[seg.arena])/garbageShare), nowNs)
	}
	for !fits() {
		b, slot := sh.soonestLongLocked(seg, codeAlone)
		if b == nil {
			break
		}
		sh.evictLocked(seg, b, slot, nowNs)
	}
	for range reclaimSegments {
		if fits() {
			return
		}
		if sh.hand = sh.reclaimLocked(sh.hand, k.hash, nowNs); t.directory == nil {
			return
		}
	}
}

// freeInArenaLocked evicts long keys of a segment until its arena has so many bytes of garbage, and closes the gaps.
func (sh *shard) freeInArenaLocked(seg *segment, bytes int, nowNs int64) {
	for int(seg.garbage) < bytes {
		b, slot := sh.soonestLongLocked(seg, codeInArena)
		if b == nil {
			break
		}
		sh.evictLocked(seg, b, slot, nowNs)
	}
	sh.table.squeeze(seg)
}

// soonestLongLocked returns the bucket and slot of the entry that is stored in this way, is not pinned and expires
// first, or nil.
func (sh *shard) soonestLongLocked(seg *segment, code uint64) (soonest *bucket, soonestSlot int) {
	soonestNs := int64(math.MaxInt64)
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range bucketSlots {
			if b.code(slot)&codeMask == code && b.tatNs[slot] < soonestNs && !sh.pinnedLocked(b, slot) {
				soonest, soonestSlot, soonestNs = b, slot, b.tatNs[slot]
			}
		}
	}
	return soonest, soonestSlot
}

// reclaimLocked frees a segment at a prefix, but not the one of a hash, and returns the prefix of the next.
func (sh *shard) reclaimLocked(at, notOf uint64, nowNs int64) (next uint64) {
	seg, next := sh.table.segmentAfter(at)
	if first, other := sh.table.halves(at); other != nil {
		if own := sh.table.segmentOf(notOf); own != first && own != other {
			sh.shrinkLocked(seg, other, at, nowNs)
		}
	}
	return next
}

// shrinkLocked merges the two halves at a prefix. What does not fit into one segment is evicted, the soonest first.
func (sh *shard) shrinkLocked(seg, other *segment, at uint64, nowNs int64) (evicted int) {
	const most = segmentFull - 1
	evicted = sh.evictSoonestLocked(nowNs, int(seg.used)+int(other.used)-most, seg, other)
	sh.table.mergeUpTo(at, most)
	sh.settleLocked()
	return evicted
}

// evictSoonestLocked evicts n entries of one or two segments, those that expire soonest, as far as they are not pinned.
func (sh *shard) evictSoonestLocked(nowNs int64, n int, from ...*segment) (evicted int) {
	if n <= 0 {
		return 0
	}
	tats := make([]int64, 0, 2*segmentSlots)
	for _, of := range from {
		of.each(func(b *bucket, slot int) {
			if !sh.pinnedLocked(b, slot) {
				tats = append(tats, b.tatNs[slot])
			}
		})
	}
	if len(tats) == 0 {
		return 0
	}
	slices.Sort(tats)
	lastNs := tats[min(n, len(tats))-1]
	for _, of := range from {
		of.each(func(b *bucket, slot int) {
			if evicted < n && b.tatNs[slot] <= lastNs && !sh.pinnedLocked(b, slot) {
				sh.evictLocked(of, b, slot, nowNs)
				evicted++
			}
		})
		sh.table.compact(of)
	}
	return evicted
}

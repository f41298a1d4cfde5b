package shard

import (
	"math"
	"slices"

	"cellserver/internal/limiter"
)

// pins says which keys belong to the transaction that holds a shard's lock, and must not be evicted.
type pins interface {
	holds(hash uint64) bool
}

const (
	// expireEvery is the number of evictions between searches of a segment for expired entries, each of which
	// costs several inserts.
	expireEvery = 16
	// reclaimSegments bounds the segments visited by an insert to free bytes. A long key that needs more
	// exceeds the bound, and the Sweeper evicts for it.
	reclaimSegments = 16
)

// hand is the position of a walk around the tables.
type hand struct {
	table int    // of those of a walk
	at    uint64 // a prefix
}

func (h *hand) nextTable(n int) { *h = hand{table: (h.table + 1) % n} }

// makeRoomLocked evicts for a new key: expired entries, else the soonest expiring of a few nearby. It returns
// false if the segment has none to give, as a shard's first one or with all keys pinned: then the table
// exceeds the bound by a segment.
func (sh *shard) makeRoomLocked(t *table, it *item, nowNs int64) bool {
	if t.directory == nil {
		sh.reclaimLocked(t, nil, nowNs, func() bool { return t.budget.fits(t.growth(it)) })
		return false
	}
	if t.values && t.endless == t.count {
		return false
	}
	seg := t.segmentOf(it.ref.hash)
	if seg.used >= t.full() && !sh.freeSlotLocked(t, seg, it.ref.hash, nowNs) {
		return false
	}
	if t.long {
		sh.freeBytesLocked(t, seg, it, nowNs)
	}
	return true
}

// freeSlotLocked frees a slot in the bucket of a hash, whose entries are about as many as Redis samples, and
// cached. The new entry gets its home bucket, so overflow chains do not grow although the segment may be
// fuller than by growth.
func (sh *shard) freeSlotLocked(t *table, seg *segment, hash uint64, nowNs int64) bool {
	seg.evictions++
	if seg.evictions%expireEvery == 1 && sh.removeExpiredLocked(t, seg, nowNs) > 0 && seg.used < t.full() {
		return true
	}
	i := homeOf(hash)
	for range segmentBuckets {
		b := &seg.buckets[i]
		if t.free(b) < t.slots() {
			return true
		}
		if slot := sh.soonestLocked(t, b); slot < t.slots() {
			sh.evictLocked(t, seg, b, slot, nowNs)
			return true
		}
		i = nextBucket(i)
	}
	return false
}

// soonestLocked returns the slot of a full bucket's evictable entry that expires first, or slots.
func (sh *shard) soonestLocked(t *table, b *bucket) (soonest int) {
	soonest, soonestNs := t.slots(), int64(math.MaxInt64)
	for slot := range t.slots() { // some never expire
		if tatNs := b.tatNs(slot); (tatNs < soonestNs || soonest == t.slots()) && sh.mayEvictLocked(t, b, slot) {
			soonest, soonestNs = slot, tatNs
		}
	}
	return soonest
}

// mayEvictLocked reports whether an entry is neither pinned nor a value that never expires.
func (sh *shard) mayEvictLocked(t *table, b *bucket, slot int) bool {
	return (!t.values || b.tatNs(slot) != limiter.NeverNs) && (sh.pins == nil || !sh.pins.holds(t.hashAt(b, slot)))
}

// evictLocked removes an entry and counts it as evicted unless it had expired.
func (sh *shard) evictLocked(t *table, seg *segment, b *bucket, slot int, nowNs int64) {
	if sh.watched != nil {
		sh.watched.lost(t.hashAt(b, slot))
	}
	t.noteLowered(b, slot)
	if b.tatNs(slot) <= nowNs {
		sh.expired++
	} else {
		t.evicted++
	}
	t.remove(seg, b, slot)
}

// freeBytesLocked frees bytes for a record: of the soonest expiring in its own segment, else by merging
// segments.
func (sh *shard) freeBytesLocked(t *table, seg *segment, it *item, nowNs int64) {
	fits := func() bool {
		t.settle()
		growth := t.longGrowth(&seg.arena, it)
		return growth == 0 || t.budget.fits(growth)
	}
	for !fits() && it.place() == placeArena { // several at once, to avoid moving records for each insert
		evicted := sh.evictSoonestLocked(t, nowNs, ceilDiv(int(seg.used), garbageShare), nil, seg)
		if t.squeeze(seg); evicted == 0 {
			break
		}
	}
	isLarge := func(b *bucket, slot int) bool { return b.place(slot) == placeLarge }
	for !fits() && sh.evictSoonestLocked(t, nowNs, 1, isLarge, seg) > 0 {
		continue
	}
	sh.reclaimLocked(t, seg, nowNs, fits)
}

// reclaimLocked frees segments other than notThis, of the tables with a table's bound, until fits.
func (sh *shard) reclaimLocked(of *table, notThis *segment, nowNs int64, fits func() bool) {
	h, tables := &sh.hand, sh.tables()
	around := tables[:numTables-1]
	if of.values {
		h, around = &sh.valueHand, tables[numTables-1:]
	}
	for n := 0; n < reclaimSegments && !fits(); n++ {
		t := around[h.table]
		if t.directory == nil {
			h.nextTable(len(around))
			continue
		}
		seg, next := t.segmentAfter(h.at)
		if first, other := t.halves(h.at); other != nil && notThis != first && notThis != other {
			sh.shrinkLocked(t, seg, other, h.at, nowNs)
		}
		if h.at = next; next == 0 {
			h.nextTable(len(around))
		}
	}
}

// shrinkLocked merges the two halves at a prefix and evicts the soonest expiring excess.
func (sh *shard) shrinkLocked(t *table, seg, other *segment, at uint64, nowNs int64) (evicted int) {
	most := int(t.full()) - 1
	evicted = sh.evictSoonestLocked(t, nowNs, int(seg.used)+int(other.used)-most, nil, seg, other)
	t.merge(at, most)
	t.settle()
	return evicted
}

// evictSoonestLocked evicts up to n evictable entries of one or two segments, the soonest expiring first, of
// those that meet cond, which may be nil.
func (sh *shard) evictSoonestLocked(t *table, nowNs int64, n int, cond func(b *bucket, slot int) bool, from ...*segment) (evicted int) {
	if n <= 0 {
		return 0
	}
	mayEvict := func(b *bucket, slot int) bool { return (cond == nil || cond(b, slot)) && sh.mayEvictLocked(t, b, slot) }
	tats := make([]int64, 0, 2*segmentBuckets*longSlots)
	for _, of := range from {
		t.each(of, func(b *bucket, slot int) {
			if mayEvict(b, slot) {
				tats = append(tats, b.tatNs(slot))
			}
		})
	}
	if len(tats) == 0 {
		return 0
	}
	slices.Sort(tats)
	lastNs := tats[min(n, len(tats))-1]
	for _, of := range from {
		t.each(of, func(b *bucket, slot int) {
			if evicted < n && b.tatNs(slot) <= lastNs && mayEvict(b, slot) {
				sh.evictLocked(t, of, b, slot, nowNs)
				evicted++
			}
		})
		t.tidy(of)
	}
	return evicted
}

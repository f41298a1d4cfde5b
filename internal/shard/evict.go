package shard

import (
	"cmp"
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
	// spareBuckets bounds the buckets that are searched for a key without a block.
	spareBuckets = 4
)

// hand is the position of a walk around the tables.
type hand struct {
	table int    // of those of a walk
	at    uint64 // a prefix
}

func (h *hand) nextTable(n int) { *h = hand{table: (h.table + 1) % n} }

// makeRoomLocked evicts for a new key: expired entries, else the soonest expiring of a few nearby. It returns
// false if the segment has none to give, as a shard's first one or with all keys pinned: then the table
// exceeds the bound by a segment. Keys with a block stay while other keys of the shard can go, else a flood
// of new keys would end blocks.
func (sh *shard) makeRoomLocked(t *table, it *item, nowNs int64) bool {
	fits := func() bool { return t.budget.fits(t.growth(it)) }
	if t.directory == nil {
		sh.reclaimLocked(t, nil, nowNs, fits)
		return false
	}
	if t.values && t.endless == t.count {
		return false
	}
	seg := t.segmentOf(it.ref.hash)
	if seg.used >= t.full() && !sh.freeSlotLocked(t, seg, it.ref.hash, nowNs, true) {
		if t.mayBlock() && sh.hasShort() {
			if sh.reclaimShortLocked(nowNs, fits); fits() {
				return false
			}
		}
		if !sh.freeSlotLocked(t, seg, it.ref.hash, nowNs, false) {
			return false
		}
	}
	if t.long {
		sh.freeBytesLocked(t, seg, it, nowNs)
	}
	return true
}

// hasShort reports whether the tables of short states, of which none has a block, can give room.
func (sh *shard) hasShort() bool { return sh.inline.made > 1 || sh.packed.made > 1 }

// mayBlock reports whether the table's keys may have blocks, and holds.
func (t *table) mayBlock() bool { return t.long && !t.values }

// blockedUntil returns the end of an entry's block, 0 for none.
func (t *table) blockedUntil(b *bucket, slot int, nowNs int64) (untilNs int64) {
	if !t.mayBlock() || b.kind(slot) != limiter.Named {
		return 0
	}
	s := limiter.State{Kind: limiter.Named, ExpiresNs: b.tatNs(slot), Payload: t.payloadAt(b, slot)}
	return limiter.BlockedUntil(&s, nowNs)
}

// freeSlotLocked frees a slot in the bucket of a hash, whose entries are about as many as Redis samples, and
// cached. The new entry gets its home bucket, so overflow chains do not grow although the segment may be
// fuller than by growth. With spare, it returns false rather than evict a key with a block.
func (sh *shard) freeSlotLocked(t *table, seg *segment, hash uint64, nowNs int64, spare bool) bool {
	if spare { // once for an insert
		seg.evictions++
		if seg.evictions%expireEvery == 1 && sh.removeExpiredLocked(t, seg, nowNs) > 0 && seg.used < t.full() {
			return true
		}
	}
	i := homeOf(hash)
	for n := range segmentBuckets {
		b := &seg.buckets[i]
		if t.free(b) < t.slots() {
			return true
		}
		if slot := sh.soonestLocked(t, b, nowNs, spare); slot < t.slots() {
			sh.evictLocked(t, seg, b, slot, nowNs)
			return true
		}
		if spare && n+1 == spareBuckets {
			break
		}
		i = nextBucket(i)
	}
	return false
}

// soonestLocked returns the slot of a full bucket's evictable entry that expires first: of those without a
// block, else, unless these are spared, of the block that ends first. It returns slots if there is no such
// entry.
func (sh *shard) soonestLocked(t *table, b *bucket, nowNs int64, spare bool) (soonest int) {
	blocked, ending, endingNs := uint(0), t.slots(), int64(math.MaxInt64)
	for {
		soonest, soonestNs := t.slots(), int64(math.MaxInt64)
		for slot := range t.slots() { // some never expire
			if tatNs := b.tatNs(slot); blocked>>slot&1 == 0 && (tatNs < soonestNs || soonest == t.slots()) && sh.mayEvictLocked(t, b, slot) {
				soonest, soonestNs = slot, tatNs
			}
		}
		if soonest == t.slots() {
			break
		}
		untilNs := t.blockedUntil(b, soonest, nowNs)
		if untilNs == 0 {
			return soonest
		}
		blocked |= 1 << soonest
		if untilNs < endingNs {
			ending, endingNs = soonest, untilNs
		}
	}
	if spare {
		return t.slots()
	}
	return ending
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
	sh.loseHoldsLocked(t, b, slot, nowNs)
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
	spared := sh.freeOwnBytesLocked(t, seg, it, nowNs, true, fits)
	if spared && !fits() {
		if sh.hasShort() {
			sh.reclaimShortLocked(nowNs, fits)
		}
		sh.freeOwnBytesLocked(t, seg, it, nowNs, false, fits)
	}
	sh.reclaimLocked(t, seg, nowNs, fits)
}

// freeOwnBytesLocked evicts from a record's segment until it fits, and reports whether it has spared blocks.
func (sh *shard) freeOwnBytesLocked(t *table, seg *segment, it *item, nowNs int64, spare bool, fits func() bool) (spared bool) {
	for !fits() && it.place() == placeArena { // several at once, to avoid moving records for each insert
		chosen, has := sh.chooseLocked(t, nowNs, ceilDiv(int(seg.used), garbageShare), nil, spare, seg)
		spared = spared || has
		sh.evictChosenLocked(t, chosen, nowNs, seg)
		if t.squeeze(seg); len(chosen) == 0 {
			break
		}
	}
	isLarge := func(b *bucket, slot int) bool { return b.place(slot) == placeLarge }
	for !fits() {
		chosen, has := sh.chooseLocked(t, nowNs, 1, isLarge, spare, seg)
		spared = spared || has
		if sh.evictChosenLocked(t, chosen, nowNs, seg); len(chosen) == 0 {
			break
		}
	}
	return spared
}

// reclaimShortLocked is reclaimLocked in the tables of short states.
func (sh *shard) reclaimShortLocked(nowNs int64, fits func() bool) {
	tables := sh.tables()
	sh.reclaimAroundLocked(&sh.hand, tables[:numShort], nil, nowNs, fits)
}

// reclaimLocked frees segments other than notThis, of the tables with a table's bound, until fits.
func (sh *shard) reclaimLocked(of *table, notThis *segment, nowNs int64, fits func() bool) {
	h, tables := &sh.hand, sh.tables()
	around := tables[:numTables-1]
	if of.values {
		h, around = &sh.valueHand, tables[numTables-1:]
	}
	sh.reclaimAroundLocked(h, around, notThis, nowNs, fits)
}

func (sh *shard) reclaimAroundLocked(h *hand, around []*table, notThis *segment, nowNs int64, fits func() bool) {
	if h.table >= len(around) {
		*h = hand{}
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

// shrinkLocked merges the two halves at a prefix and evicts the soonest expiring excess. It spares blocks
// while other keys of the shard can give room.
func (sh *shard) shrinkLocked(t *table, seg, other *segment, at uint64, nowNs int64) (evicted int) {
	most := int(t.full()) - 1
	excess := int(seg.used) + int(other.used) - most
	chosen, spared := sh.chooseLocked(t, nowNs, excess, nil, sh.hasShort(), seg, other)
	if spared && len(chosen) < excess {
		return 0
	}
	evicted = sh.evictChosenLocked(t, chosen, nowNs, seg, other)
	t.merge(at, most)
	t.settle()
	return evicted
}

// evictSoonestLocked evicts up to n evictable entries of a segment, the soonest expiring first. It spares
// blocks as shrinkLocked does.
func (sh *shard) evictSoonestLocked(t *table, nowNs int64, n int, seg *segment) (evicted int) {
	chosen, _ := sh.chooseLocked(t, nowNs, n, nil, sh.hasShort(), seg)
	return sh.evictChosenLocked(t, chosen, nowNs, seg)
}

// candidate is an entry that may be evicted: when it expires, or its block ends, and its index in a segment.
type candidate struct {
	ns    int64
	index uint16 // with the segment's number above
}

// chooseLocked returns up to n evictable entries of one or two segments that meet cond, which may be nil: the
// soonest expiring of those without a block, then those whose block ends first, unless they are spared.
func (sh *shard) chooseLocked(
	t *table, nowNs int64, n int, cond func(b *bucket, slot int) bool, spare bool, from ...*segment,
) (chosen []candidate, spared bool) {
	if n <= 0 {
		return nil, false
	}
	all := make([]candidate, 0, 2*segmentBuckets*longSlots)
	for i, of := range from {
		for j := range of.buckets {
			b := &of.buckets[j]
			for slot := range t.slots() {
				if !t.isEmpty(b, slot) && (cond == nil || cond(b, slot)) && sh.mayEvictLocked(t, b, slot) {
					all = append(all, candidate{b.tatNs(slot), uint16(i<<indexBits) | uint16(indexOf(j, slot))})
				}
			}
		}
	}
	sooner := func(a, b candidate) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.index, b.index)) }
	slices.SortFunc(all, sooner)
	var blocked []candidate
	chosen = all[:0]
	for _, c := range all {
		if len(chosen) == n {
			return chosen, false
		}
		b, slot := from[c.index>>indexBits].entryAt(uint64(c.index))
		if untilNs := t.blockedUntil(b, slot, nowNs); untilNs > 0 {
			blocked = append(blocked, candidate{untilNs, c.index})
		} else {
			chosen = append(chosen, c)
		}
	}
	if spare {
		return chosen, len(blocked) > 0
	}
	slices.SortFunc(blocked, sooner)
	return append(chosen, blocked[:min(len(blocked), n-len(chosen))]...), false
}

// evictChosenLocked evicts what chooseLocked has chosen of the segments.
func (sh *shard) evictChosenLocked(t *table, chosen []candidate, nowNs int64, from ...*segment) (evicted int) {
	for _, c := range chosen {
		of := from[c.index>>indexBits]
		b, slot := of.entryAt(uint64(c.index))
		sh.evictLocked(t, of, b, slot, nowNs)
	}
	for _, of := range from {
		t.tidy(of)
	}
	return len(chosen)
}

package shard

import (
	"hash/maphash"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A table is an extendible hash table without locks; its shard has the lock. It consists of fixed-size
// segments that split and merge one at a time, so no operation rebuilds the table.
//
// The directory maps a hash's leading bits, after the shard's, to a segment; its low half selects the home
// bucket. Neither changes as the table grows and shrinks.
type table struct {
	seed      maphash.Seed
	skip      uint8      // leading bits that selected the shard
	depth     uint8      // of the directory
	long      bool       // holds what neither the inline nor the packed table does
	packed    bool       // holds shapes with words
	values    bool       // holds values only
	directory []*segment // 1<<depth entries; shallower segments have several
	count     int
	made      int      // number of segments
	spare     *segment // holds a segment's entries during a rebuild
	chunks    chunks   // of the long table
	large     large
	shorts    int               // entries with short keys
	versions  uint64            // given to payloads so far
	joined    []byte            // reused copy of a record in two chunks
	atDepth   [maxDepth + 1]int // number of segments by depth
	tracked   bool              // changes are recorded
	changes   changes
	endless   int // number of the long table's entries that never expire
	shapes    shapes

	budget      *budget
	heldBytes   int    // known to the budget
	unusedBytes int    // known to the budget
	evicted     uint64 // live entries
	refused     uint64 // new keys
}

// maxDepth, 2^30 segments, is out of reach, as seeded hashes cannot be aimed. A key beyond it would be
// dropped. The same holds for mostChunks: 32 GiB.
const maxDepth = 30

// A full segment splits for the next entry. The sweep merges siblings with up to sparse entries together, far
// enough below to avoid splitting again at once.
const (
	fullInline = segmentBuckets * inlineSlots * 9 / 10
	fullPacked = segmentBuckets * packedSlots * 19 / 20
	fullLong   = segmentBuckets * longSlots * 9 / 10
)

func (t *table) full() uint8 {
	switch {
	case t.long:
		return fullLong
	case t.packed:
		return fullPacked
	}
	return fullInline
}

func (t *table) sparse() int { return segmentBuckets * t.slots() * 5 / 6 }

// number returns the table's number among those of a walk.
func (t *table) number() uint64 {
	switch {
	case t.values:
		return 3
	case t.long:
		return 2
	case t.packed:
		return 1
	}
	return 0
}

func (t *table) slots() int {
	switch {
	case t.long:
		return longSlots
	case t.packed:
		return packedSlots
	}
	return inlineSlots
}

// reset empties the table; removals stay recorded.
func (t *table) reset() {
	t.changes.segments = nil
	*t = table{
		seed: t.seed, skip: t.skip, long: t.long, packed: t.packed, values: t.values, versions: t.versions, tracked: t.tracked, changes: t.changes,
		budget: t.budget, heldBytes: t.heldBytes, unusedBytes: t.unusedBytes, evicted: t.evicted, refused: t.refused,
	}
}

// findInline returns the bucket and slot of a possibly inline key, or nil.
func (t *table) findInline(k keyRef) (*bucket, int) {
	seg, i := t.segmentFor(k.hash), homeOf(k.hash)
	if seg == nil || seg.used == 0 { // an insert reads more of it
		return nil, 0
	}
	for range segmentBuckets { // all may have overflow marks
		b := &seg.buckets[i]
		if slot := b.match(k.code, k.low, k.high); slot < inlineSlots {
			return b, slot
		}
		if !b.passed() {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0
}

// findLong is findInline for the long table.
func (t *table) findLong(k keyRef, key *store.Key) (*bucket, int) {
	seg, i := t.segmentFor(k.hash), homeOf(k.hash)
	if seg == nil {
		return nil, 0
	}
	for range segmentBuckets {
		b := &seg.buckets[i]
		for found := b.candidates(k.hash); found != 0; found &= found - 1 {
			slot := lowestLane(found, laneBits)
			if t.isStoredAt(b, slot, key) {
				return b, slot
			}
		}
		if !b.passed() {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0
}

// isStoredAt reports whether a slot of the long table has this key.
func (t *table) isStoredAt(b *bucket, slot int, key *store.Key) bool {
	at := b.locator(slot)
	switch {
	case dbOf(at) != key.DB:
		return false
	case b.lane(slot)&plainMask != placeArena:
		return string(t.nameAt(b, slot)) == string(key.Name)
	case lengthOf(at) != nameRecordBytes(len(key.Name)):
		return false
	}
	// As in record, which is not inlined.
	if chunk, offset := t.chunks.at(chunkOf(at)), offsetOf(at); offset+lengthOf(at) <= chunkBytes {
		return string(nameOf(chunk[offset:offset+lengthOf(at)])) == string(key.Name)
	}
	return string(nameOf(t.record(at))) == string(key.Name)
}

// change updates an entry to an item. It returns false if the entry must move.
func (t *table) change(b *bucket, slot int, it *item) bool {
	if was, n := t.kindAt(b, slot), t.shape(b, slot); was == limiter.Funnel || it.kind == limiter.Funnel || n+it.shape > 0 {
		if was != it.kind || n != it.shape || t.packed != it.isPacked() {
			return false
		}
		if t.packed {
			b.setWords(slot, it.words, it.numWords)
		}
	} else if t.values != (it.kind == limiter.Value) {
		return false
	} else {
		r := t.recordAt(b, slot)
		if !t.rewrite(b, slot, &r, it.payload, true) {
			return false
		}
		b.setKind(slot, it.kind)
	}
	t.changeTAT(it.ref.hash, b, slot, it.expiresNs)
	return true
}

// growth returns the bytes that insert would add, approximately: a segment may split more than once.
func (t *table) growth(it *item) (bytes int) {
	if t.directory == nil {
		return segmentBytes + pointerBytes + t.longGrowth(&arena{}, it)
	}
	seg := t.segmentOf(it.ref.hash)
	if seg.used >= t.full() {
		bytes = segmentBytes + t.chunks.growth(ceilDiv(seg.arena.length(), 2))
		if seg.depth == t.depth {
			bytes += len(t.directory) * pointerBytes
		}
	}
	return bytes + t.longGrowth(&seg.arena, it)
}

// longGrowth returns an item's bytes beyond its slot, approximately: the allocator rounds up.
func (t *table) longGrowth(a *arena, it *item) (bytes int) {
	switch {
	case !t.long:
		return 0
	case it.place() == placeLarge:
		return it.recordBytes() + it.spare + sliceHeaderBytes
	}
	return t.chunks.growth(a.moreChunks(it.recordBytes() + it.spare))
}

func (t *table) insert(it *item) {
	if t.directory == nil {
		t.directory = []*segment{new(segment)}
		t.atDepth[0], t.made = 1, 1
	}
	seg := t.segmentOf(it.ref.hash)
	for seg.used >= t.full() {
		if seg.depth == maxDepth {
			return
		}
		t.split(seg, it.ref.hash)
		seg = t.segmentOf(it.ref.hash)
	}
	t.add(seg, it)
}

// add adds an entry to its segment, which has a free slot.
func (t *table) add(seg *segment, it *item) {
	if t.long && t.chunks.inUse() >= mostChunks {
		return
	}
	if it.shape > 0 {
		t.shapes.states[it.shape]++
	}
	if !it.ref.isLong() {
		t.shorts++
	}
	if !t.long {
		t.count++
		b, slot := t.place(seg, it.ref.hash, it.expiresNs)
		number := uint64(it.shape) << shapeShift
		if t.packed {
			p := packedKeyOf(it.ref, it.key)
			b.setPacked(slot, p.code|number, p.words[:])
			b.setWords(slot, it.words, it.numWords)
		} else {
			b.setInline(slot, it.ref.code|number, it.ref.low, it.ref.high)
		}
		t.noteNew(seg, b, slot)
		return
	}
	t.count++
	var locator uint64
	place := it.place()
	if place == placeLarge {
		record := t.encode(newBuf(it.recordBytes()+it.spare), it, place)
		locator = largeLocator(t.large.take(record, len(it.key.Name)), it.key.DB)
	} else {
		locator = t.appendItem(seg, it)
	}
	if it.expiresNs == limiter.NeverNs {
		t.endless++
	}
	b, slot := t.place(seg, it.ref.hash, it.expiresNs)
	b.setLong(slot, place|laneKind(it.kind), it.ref.hash, locator)
	t.noteNew(seg, b, slot)
}

// place finds a slot for a new entry in a segment that is not full, and sets its TAT.
func (t *table) place(seg *segment, hash uint64, tatNs int64) (b *bucket, slot int) {
	i := homeOf(hash)
	b = &seg.buckets[i]
	for slot = t.free(b); slot == t.slots(); slot = t.free(b) {
		b[0] |= bitPassed
		seg.passed = true
		i = nextBucket(i)
		b = &seg.buckets[i]
	}
	b.setTAT(slot, tatNs)
	seg.used++
	return b, slot
}

// free returns a bucket's first empty slot, or slots.
func (t *table) free(b *bucket) int {
	switch {
	case t.long:
		return b.freeLong()
	case t.packed:
		return b.freePacked()
	}
	return b.freeInline()
}

func (t *table) isEmpty(b *bucket, slot int) bool {
	if t.long {
		return b.lane(slot) == 0
	}
	return b.inlineCode(slot) == 0
}

// remove empties a slot. tidy cleans the arena.
func (t *table) remove(seg *segment, b *bucket, slot int) {
	if n := t.shape(b, slot); n > 0 {
		t.shapes.states[n]--
	}
	if (!t.long || b.kind(slot) != limiter.Funnel) && isShort(t.dbAt(b, slot), t.nameBytesAt(b, slot)) {
		t.shorts--
	}
	if t.long {
		if b.tatNs(slot) == limiter.NeverNs {
			t.endless--
		}
		if at := b.locator(slot); b.place(slot) == placeLarge {
			t.large.give(numberOf(at), t.nameBytesAt(b, slot))
		} else {
			seg.arena.garbage += uint32(lengthOf(at))
		}
		b[0] &^= laneMask << (laneBits * uint(slot))
	} else {
		b[0] &^= slotMask << (slotBits * uint(slot))
	}
	seg.used--
	seg.holed = true
	t.count--
}

// hasExpired reports whether a segment has an expired entry, much faster than removeWhere.
func (t *table) hasExpired(seg *segment, nowNs int64) bool {
	slots := t.slots()
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range slots {
			if b.tatNs(slot) <= nowNs && !t.isEmpty(b, slot) {
				return true
			}
		}
	}
	return false
}

func (t *table) removeWhere(seg *segment, cond func(b *bucket, slot int) bool) (removed int) {
	t.each(seg, func(b *bucket, slot int) {
		if cond(b, slot) {
			t.remove(seg, b, slot)
			removed++
		}
	})
	t.tidy(seg)
	return removed
}

// each visits a segment's entries; visit may remove the current one.
func (t *table) each(seg *segment, visit func(b *bucket, slot int)) {
	slots := t.slots()
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range slots {
			if !t.isEmpty(b, slot) {
				visit(b, slot)
			}
		}
	}
}

func (t *table) segmentOf(hash uint64) *segment {
	// At depth 0 without skipped bits, the mask turns a shift by 64 into one by 0 for the only entry.
	return t.directory[hash>>((64-t.skip-t.depth)&63)&uint64(len(t.directory)-1)]
}

// segmentFor is segmentOf for a possibly empty table. Comparing its result with nil avoids a load from the
// segment.
func (t *table) segmentFor(hash uint64) *segment {
	if len(t.directory) == 0 {
		return nil
	}
	return t.segmentOf(hash)
}

// prefix drops a hash's shard bits.
func (t *table) prefix(hash uint64) uint64 { return hash << t.skip }

// segmentAfter returns the segment at a prefix and the next prefix, 0 at the end. Walks by prefix survive
// splits and merges.
func (t *table) segmentAfter(at uint64) (seg *segment, next uint64) {
	seg = t.directory[at>>(64-t.depth)]
	width := uint64(1) << (64 - seg.depth) // 0 for depth 0, the only segment
	return seg, (at &^ (width - 1)) + width
}

func (t *table) bytes() int {
	return t.made*segmentBytes + len(t.directory)*pointerBytes + t.chunks.bytes() + t.large.totalBytes()
}

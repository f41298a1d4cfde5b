package shard

import (
	"hash/maphash"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A table is an extendible hash table without locks, of inline funnels or of all else; the shard above it has the lock. It is
// made of segments of a fixed size that split and merge one at a time, so no operation pays for the whole table and old and
// new never stand side by side.
//
// The directory maps a hash's leading bits (those that did not choose the shard) to a segment; the hash's low
// half picks an entry's home bucket in it. Both stay while the table grows and shrinks.
type table struct {
	seed      maphash.Seed
	skip      uint8      // leading bits of a hash that chose the shard
	depth     uint8      // of the directory
	long      bool       // which entries it holds
	directory []*segment // 1<<depth entries; a segment of a lesser depth stands in several
	count     int
	made      int      // segments
	spare     *segment // where entries stand while their segment is built anew
	chunks    chunks   // of the long table
	alone     alone
	shorts    int               // entries of the long table whose keys are short
	versions  uint64            // that payloads have had
	joined    []byte            // a record that stands in two chunks; reused
	atDepth   [maxDepth + 1]int // how many segments there are of each depth
	tracked   bool              // changes are noted
	changes   changes
}

// maxDepth is out of reach: 2^30 segments. Hashes are seeded, so nobody can aim keys at one segment. A key that
// finds no room all the same is not kept. So it is with mostChunks: 32 GiB.
const maxDepth = 30

// A full segment is split when one more entry comes. The sweep merges two that together have no more than sparse entries,
// enough below that for a table at the edge not to split and merge in turns.
const (
	fullInline = segmentBuckets * inlineSlots * 9 / 10
	fullLong   = segmentBuckets * longSlots * 9 / 10
)

func (t *table) full() uint8 {
	if t.long {
		return fullLong
	}
	return fullInline
}

func (t *table) sparse() int { return segmentBuckets * t.slots() * 5 / 6 }

// slots returns how many slots a bucket has.
func (t *table) slots() int {
	if t.long {
		return longSlots
	}
	return inlineSlots
}

// reset empties the table. What is gone stays noted.
func (t *table) reset() {
	t.changes.segments = nil
	*t = table{seed: t.seed, skip: t.skip, long: t.long, versions: t.versions, tracked: t.tracked, changes: t.changes}
}

// findInline returns the bucket and slot of a key that a table of inline keys may hold, or nil.
func (t *table) findInline(k keyRef) (*bucket, int) {
	seg, i := t.segmentFor(k.hash), homeOf(k.hash)
	if seg == nil || seg.used == 0 { // of which an insert reads more
		return nil, 0
	}
	for range segmentBuckets { // all may have the mark
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

// isStoredAt says whether the key in a slot of the long table is this one.
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
	// As record does, which is not inlined.
	if chunk, offset := t.chunks.at(chunkOf(at)), offsetOf(at); offset+lengthOf(at) <= chunkBytes {
		return string(nameOf(chunk[offset:offset+lengthOf(at)])) == string(key.Name)
	}
	return string(nameOf(t.record(at))) == string(key.Name)
}

// change brings an entry to what an item says, and is false if it must stand elsewhere.
func (t *table) change(b *bucket, slot int, it *item) bool {
	if was := t.kindAt(b, slot); was == limiter.Funnel || it.kind == limiter.Funnel {
		if was != it.kind {
			return false
		}
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

// growth returns how many bytes insert would add, or almost: a segment that splits may do so more than once.
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

// longGrowth returns how many bytes an item takes beside its slot in addition, or almost: the allocator rounds up.
func (t *table) longGrowth(a *arena, it *item) (bytes int) {
	switch {
	case !t.long:
		return 0
	case it.place() == placeAlone:
		return it.recordBytes() + it.spare + sliceHeaderBytes
	}
	return t.chunks.growth(a.moreChunks(it.recordBytes() + it.spare))
}

// insert adds an entry for a key that has none.
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
	if !t.long {
		t.count++
		b, slot := t.place(seg, it.ref.hash, it.expiresNs)
		b.setInline(slot, it.ref.code, it.ref.low, it.ref.high)
		t.noteNew(seg, b, slot)
		return
	}
	if t.chunks.inUse() >= mostChunks {
		return
	}
	t.count++
	var locator uint64
	place := it.place()
	if place == placeAlone {
		record := t.encode(newBuf(it.recordBytes()+it.spare), it, place)
		locator = aloneLocator(t.alone.take(record, len(it.key.Name)), it.key.DB)
	} else {
		locator = t.appendItem(seg, it)
	}
	if !it.ref.isLong() {
		t.shorts++
	}
	b, slot := t.place(seg, it.ref.hash, it.expiresNs)
	b.setLong(slot, place|laneKind(it.kind), it.ref.hash, locator)
	t.noteNew(seg, b, slot)
}

// place finds a slot for an entry that is not there, and sets its TAT. A segment is never full.
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

// free returns the first empty slot of a bucket, or slots.
func (t *table) free(b *bucket) int {
	if t.long {
		return b.freeLong()
	}
	return b.freeInline()
}

func (t *table) isEmpty(b *bucket, slot int) bool {
	if t.long {
		return b.lane(slot) == 0
	}
	return b.inlineCode(slot) == 0
}

// remove empties a slot. It leaves the arena for tidy.
func (t *table) remove(seg *segment, b *bucket, slot int) {
	if t.long {
		if b.kind(slot) != limiter.Funnel && isShort(t.dbAt(b, slot), t.nameBytesAt(b, slot)) {
			t.shorts--
		}
		if at := b.locator(slot); b.place(slot) == placeAlone {
			t.alone.give(numberOf(at), t.nameBytesAt(b, slot))
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

// hasExpired says whether removeWhere would find an entry that has expired; it takes a fraction of the time.
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

// removeWhere removes the entries of a segment that the condition holds for.
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

// each visits a segment's entries, and lets visit remove the one that it is called with.
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
	// Depth 0 and no bits to skip would be a shift by 64, which the mask makes one by 0; there is one entry then.
	return t.directory[hash>>((64-t.skip-t.depth)&63)&uint64(len(t.directory)-1)]
}

// segmentFor is segmentOf for a table that may have none. Who compares what it returns with nil spares the processor a look
// at the segment's first line, which would be made to see that there is one.
func (t *table) segmentFor(hash uint64) *segment {
	if len(t.directory) == 0 {
		return nil
	}
	return t.segmentOf(hash)
}

// prefix drops the bits of a hash that chose the shard.
func (t *table) prefix(hash uint64) uint64 { return hash << t.skip }

// segmentAfter returns the segment at a prefix and the prefix of the one after it, 0 after the last. A walk by
// prefixes stays right when segments split and merge under it.
func (t *table) segmentAfter(at uint64) (seg *segment, next uint64) {
	seg = t.directory[at>>(64-t.depth)]
	width := uint64(1) << (64 - seg.depth) // 0 for depth 0: the only segment is the last
	return seg, (at &^ (width - 1)) + width
}

// bytes returns what the table takes.
func (t *table) bytes() int {
	return t.made*segmentBytes + len(t.directory)*pointerBytes + t.chunks.bytes() + t.alone.totalBytes()
}

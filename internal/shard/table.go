package shard

import (
	"hash/maphash"

	"cellserver/internal/store"
)

// A table is an extendible hash table without locks; the shard above it has the lock. It is made of segments of
// a fixed size that split and merge one at a time, so no operation pays for the whole table and old and new
// never stand side by side.
//
// The directory maps a hash's leading bits (those that did not choose the shard) to a segment; the hash's low
// half picks an entry's home bucket in it. Both stay while the table grows and shrinks.
type table struct {
	seed      maphash.Seed
	skip      uint8      // leading bits of a hash that chose the shard
	depth     uint8      // of the directory
	directory []*segment // 1<<depth entries; a segment of a lesser depth stands in several
	count     int
	made      int      // segments
	spare     *segment // where entries stand while their segment is built anew
	arenas    arenas
	atDepth   [maxDepth + 1]int // how many segments there are of each depth
}

const (
	segmentFull = segmentSlots * 9 / 10
	// Two segments merge when together they fill no more than this, well below segmentFull, so that a table at
	// the edge does not split and merge in turns.
	segmentSparse = segmentSlots / 2
	// maxDepth is out of reach: 2^30 segments. Hashes are seeded, so nobody can aim keys at one segment. A key that
	// finds no room all the same is not kept.
	maxDepth = 30
)

// reset empties the table.
func (t *table) reset() { *t = table{seed: t.seed, skip: t.skip} }

// find returns a key's bucket and slot, or nil.
func (t *table) find(k keyRef, key *store.Key) (*bucket, int) {
	if len(t.directory) == 0 {
		return nil, 0
	}
	seg := t.segmentOf(k.hash)
	if k.isLong() {
		return t.findLong(seg, k, key)
	}
	i := homeOf(k.hash)
	for range segmentBuckets { // all may have the mark
		b := &seg.buckets[i]
		if slot := b.match(k.code, k.low, k.high); slot < bucketSlots {
			return b, slot
		}
		if b.meta&bitPassed == 0 {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0
}

func (t *table) findLong(seg *segment, k keyRef, key *store.Key) (*bucket, int) {
	i := homeOf(k.hash)
	for range segmentBuckets {
		b := &seg.buckets[i]
		d := b.differences(k.code)
		for slot := range bucketSlots {
			if d>>(slotBits*uint(slot))&slotMask == 0 && b.key[slot][0] == k.hash &&
				isStored(key, t.stored(seg, k.code, b.key[slot][1])) {
				return b, slot
			}
		}
		if b.meta&bitPassed == 0 {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0
}

// set stores the TAT of a key that find answered b and slot for. One that is not after nowNs removes the key.
func (t *table) set(k keyRef, key *store.Key, b *bucket, slot int, nowNs, tatNs int64) {
	switch {
	case tatNs <= nowNs && b != nil:
		seg := t.segmentOf(k.hash)
		t.remove(seg, b, slot)
		t.compact(seg)
	case tatNs <= nowNs:
	case b != nil:
		b.tatNs[slot] = tatNs
	default:
		t.insert(k, key, kindFunnel, tatNs)
	}
}

// growth returns how many bytes insert would add, or almost: a segment that splits may do so more than once.
func (t *table) growth(k keyRef, key *store.Key) (bytes int) {
	if t.directory == nil {
		return segmentBytes + pointerBytes + t.arenaGrowth(nil, k.code, storedBytes(key))
	}
	seg := t.segmentOf(k.hash)
	if seg.used >= segmentFull {
		bytes = segmentBytes
		if seg.depth == t.depth {
			bytes += len(t.directory) * pointerBytes
		}
	}
	if k.isLong() {
		bytes += t.arenaGrowth(seg, k.code, storedBytes(key))
	}
	return bytes
}

// insert adds a key that find did not find.
func (t *table) insert(k keyRef, key *store.Key, kind kind, tatNs int64) {
	if t.directory == nil {
		t.directory = []*segment{new(segment)}
		t.atDepth[0], t.made = 1, 1
	}
	seg := t.segmentOf(k.hash)
	for seg.used >= segmentFull {
		if seg.depth == maxDepth {
			return
		}
		t.split(seg, k.hash)
		seg = t.segmentOf(k.hash)
	}
	t.place(seg, k, key, kind, tatNs)
}

// place adds a key to its segment, which has a free slot.
func (t *table) place(seg *segment, k keyRef, key *store.Key, kind kind, tatNs int64) {
	words := [2]uint64{k.low, k.high}
	if k.isLong() {
		words[1] = t.storeLong(seg, k.code, key)
	}
	seg.place(k.hash, k.code|uint64(kind)<<kindShift, words, tatNs)
	t.count++
}

// remove empties a slot. It leaves the arena for compact to tidy.
func (t *table) remove(seg *segment, b *bucket, slot int) {
	if code := b.code(slot); isLong(code) {
		t.dropLong(seg, code, b.key[slot][1])
	}
	b.clearSlot(slot)
	seg.used--
	seg.holed = true
	t.count--
}

// removeWhere removes the entries of a segment that the condition holds for.
func (t *table) removeWhere(seg *segment, cond func(b *bucket, slot int) bool) (removed int) {
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range bucketSlots {
			if b.code(slot) != 0 && cond(b, slot) {
				t.remove(seg, b, slot)
				removed++
			}
		}
	}
	t.compact(seg)
	return removed
}

func (t *table) segmentOf(hash uint64) *segment {
	// Depth 0 and no bits to skip would be a shift by 64, which the mask makes one by 0; there is one entry then.
	return t.directory[hash>>((64-t.skip-t.depth)&63)&uint64(len(t.directory)-1)]
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

func (t *table) segments() int { return t.made }

// bytes returns what the table takes.
func (t *table) bytes() int {
	return t.made*segmentBytes + len(t.directory)*pointerBytes + t.arenas.totalBytes()
}

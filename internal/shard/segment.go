package shard

import "math/bits"

// A segment is a fixed hash table of buckets, without pointers, so that the collector does not look into it. It
// fills one of the allocator's size classes exactly; a test holds that.
type segment struct {
	used    uint8
	depth   uint8 // how many leading bits its entries share
	passed  bool  // a bucket has its overflow mark
	holed   bool  // an entry was removed since the overflow marks were last exact
	arena   uint32
	garbage uint32 // bytes of the arena that are of no entry

	evictions uint8 // and around again

	_       [128 - 13]byte
	buckets [segmentBuckets]bucket
}

const (
	segmentBytes   = 4096
	segmentBuckets = 31
	bucketSlots    = 5
	segmentSlots   = segmentBuckets * bucketSlots
)

// A bucket is two cache lines. The first holds all that is read of most keys that are not there, and of one in
// five that are.
type bucket struct {
	meta  uint64
	tatNs [bucketSlots]int64
	key   [bucketSlots][2]uint64 // low and high of keyRef; a long key's second word is where it stands
}

// A bucket's meta is 12 bits a slot, and 4 of its own.
//
// Of a slot's, five say how the key is stored (0: the slot is empty), three are its kind, and one is set where the
// key has a database's number in front. The next is kept free for a mark of entries that have changed; two are
// spare. An entry is removed by clearing its bits, and no other moves.
const (
	slotBits  = 12
	everySlot = 1 | 1<<slotBits | 1<<(2*slotBits) | 1<<(3*slotBits) | 1<<(4*slotBits)
	slotMask  = 1<<slotBits - 1

	codeMask     = 0x1f
	codeEmptyKey = 1  // and one more for each byte of an inline key
	codeInArena  = 18 // a long key: its hash, then its offset and length in the segment's arena
	codeAlone    = 19 // a longer one: its hash, then its arena
	kindShift    = 5
	kindMask     = 7
	bitOtherDB   = 1 << 8
	identityMask = codeMask | bitOtherDB

	// bitPassed is the overflow mark: an entry whose home is here or before found no room and went on. It may
	// outlive those entries; only what builds a segment anew makes it exact.
	bitPassed = 1 << 60
)

// kind says what an entry's state means.
type kind uint8

const kindFunnel kind = 1

// homeOf maps the hash's low half to a bucket. It takes no bit that a directory takes.
func homeOf(hash uint64) uint64 { return uint64(uint32(hash)) * segmentBuckets >> 32 }

func nextBucket(i uint64) uint64 {
	if i++; i < segmentBuckets {
		return i
	}
	return 0
}

// differences has twelve zero bits for each slot whose identity bits are those of the code.
func (b *bucket) differences(code uint64) uint64 {
	return (b.meta ^ code*everySlot) & (identityMask * everySlot)
}

// match returns the slot of a key, of which two words are all there is to compare, or bucketSlots. It compares all
// five without a branch: which of them it is cannot be foretold.
func (b *bucket) match(code, low, high uint64) int {
	d := b.differences(code)
	m := isZero(d&slotMask | (b.key[0][0] ^ low) | (b.key[0][1] ^ high))
	m |= isZero(d>>slotBits&slotMask|(b.key[1][0]^low)|(b.key[1][1]^high)) << 1
	m |= isZero(d>>(2*slotBits)&slotMask|(b.key[2][0]^low)|(b.key[2][1]^high)) << 2
	m |= isZero(d>>(3*slotBits)&slotMask|(b.key[3][0]^low)|(b.key[3][1]^high)) << 3
	m |= isZero(d>>(4*slotBits)&slotMask|(b.key[4][0]^low)|(b.key[4][1]^high)) << 4
	return bits.TrailingZeros64(m | 1<<bucketSlots)
}

// isZero is 1 for 0, and else 0.
func isZero(x uint64) uint64 { return ((x - 1) &^ x) >> 63 }

// isLong says of a slot's bits whether its key is not inline.
func isLong(code uint64) bool { return code&codeMask >= codeInArena }

// code returns a slot's 12 bits.
func (b *bucket) code(slot int) uint64 { return b.meta >> (slotBits * uint(slot)) & slotMask }

func (b *bucket) clearSlot(slot int) { b.meta &^= slotMask << (slotBits * uint(slot)) }

// free returns the first empty slot, or bucketSlots.
func (b *bucket) free() int {
	// Adding 31 carries out of five bits unless they are all 0; the sixth has room for it.
	carries := b.meta&(codeMask*everySlot) + codeMask*everySlot
	return min(bits.TrailingZeros64(^carries&((codeMask+1)*everySlot))/slotBits, bucketSlots)
}

// place finds a slot for an entry that is not there, and sets its key, kind and TAT. A segment is never full.
func (g *segment) place(hash uint64, slotCode uint64, words [2]uint64, tatNs int64) {
	i := homeOf(hash)
	b := &g.buckets[i]
	slot := b.free()
	for slot == bucketSlots {
		b.meta |= bitPassed
		g.passed = true
		i = nextBucket(i)
		b = &g.buckets[i]
		slot = b.free()
	}
	b.meta |= slotCode << (slotBits * uint(slot))
	b.tatNs[slot] = tatNs
	b.key[slot] = words
	g.used++
}

// clear makes a segment empty and its marks exact. It keeps the depth.
func (g *segment) clear() {
	g.used, g.passed, g.holed, g.arena, g.garbage = 0, false, false, 0, 0
	for i := range g.buckets {
		g.buckets[i].meta = 0
	}
}

// each visits a segment's entries.
func (g *segment) each(visit func(b *bucket, slot int)) {
	for i := range g.buckets {
		b := &g.buckets[i]
		for slot := range bucketSlots {
			if b.code(slot) != 0 {
				visit(b, slot)
			}
		}
	}
}

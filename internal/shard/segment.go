package shard

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/limiter"
)

// A segment is a fixed hash table of buckets without pointers, which the collector skips. It fills a size
// class exactly, which a test checks. Its entries are all inline or all of the long table.
type segment struct {
	used      uint8
	depth     uint8 // number of leading bits shared by all entries
	passed    bool  // a bucket has an overflow mark
	holed     bool  // a removal may have left stale overflow marks
	listed    bool  // see changes
	evictions uint8 // wraps around
	arena     arena // of the long table

	_       [128 - 24]byte
	buckets [segmentBuckets]bucket
}

const (
	segmentBytes   = 4096
	segmentBuckets = 31
)

// A bucket is two cache lines: the meta, with bits for each slot and bitPassed, the TATs, and the rest of an
// inline or a long bucket.
type bucket [16]uint64

const (
	tatWord = 1 // of the first slot

	// bitPassed is the overflow mark: an entry from here or before was placed further on. It may be stale
	// until the segment is rebuilt.
	bitPassed = 1 << 60
)

// homeOf maps a hash's low half, unused by the directory, to a bucket.
func homeOf(hash uint64) uint64 { return uint64(uint32(hash)) * segmentBuckets >> 32 }

func nextBucket(i uint64) uint64 {
	if i++; i < segmentBuckets {
		return i
	}
	return 0
}

func (b *bucket) tatNs(slot int) int64 { return int64(b[tatWord+slot]) }

func (b *bucket) setTAT(slot int, tatNs int64) { b[tatWord+slot] = uint64(tatNs) }

func (b *bucket) passed() bool { return b[0]&bitPassed != 0 }

func isZero(x uint64) uint64 { return ((x - 1) &^ x) >> 63 }

// clear empties a segment but for its depth and arena.
func (g *segment) clear() {
	g.used, g.passed, g.holed = 0, false, false
	for i := range g.buckets {
		g.buckets[i][0] = 0
	}
}

// An entry's index consists of its bucket's number and three bits for its slot.
const (
	slotIndexBits = 3
	indexBits     = 8
)

func indexOf(bucket, slot int) uint64 { return uint64(bucket<<slotIndexBits | slot) }

// entryAt is the inverse of indexOf. It ignores higher bits.
func (g *segment) entryAt(index uint64) (b *bucket, slot int) {
	return &g.buckets[index&(1<<indexBits-1)>>slotIndexBits], int(index & (1<<slotIndexBits - 1))
}

// lowestLane returns the number of the first lane with a bit set.
func lowestLane(set uint64, laneBits int) int { return bits.TrailingZeros64(set) / laneBits }

// A bucket of inline keys has the meta, five TATs, and five keys of two words, low and high of keyRef. The
// first cache line suffices for most absent keys and a fifth of the present ones.
//
// The meta has 12 bits a slot: five for the key's length (0: empty), four for the number of a shape (0: a
// plain funnel), two marks of changes, one for a database number before the key. Clearing its bits removes an
// entry; no other moves.
const (
	inlineSlots = 5
	keyWord     = tatWord + inlineSlots // of the first slot

	slotBits  = 12
	everySlot = 1 | 1<<slotBits | 1<<(2*slotBits) | 1<<(3*slotBits) | 1<<(4*slotBits)
	slotMask  = 1<<slotBits - 1

	codeMask     = 0x1f
	codeEmptyKey = 1 // plus one for each byte of a key
	shapeShift   = 5
	shapeBits    = 4
	shapeMask    = (1<<shapeBits - 1) << shapeShift
	bitOtherDB   = 1 << 11
	identityMask = codeMask | bitOtherDB
)

// match returns the slot of a key, or inlineSlots. It compares all five without a branch, as the slot is
// unpredictable.
func (b *bucket) match(code, low, high uint64) int {
	d := (b[0] ^ code*everySlot) & (identityMask * everySlot)
	m := isZero(d&slotMask | (b[6] ^ low) | (b[7] ^ high))
	m |= isZero(d>>slotBits&slotMask|(b[8]^low)|(b[9]^high)) << 1
	m |= isZero(d>>(2*slotBits)&slotMask|(b[10]^low)|(b[11]^high)) << 2
	m |= isZero(d>>(3*slotBits)&slotMask|(b[12]^low)|(b[13]^high)) << 3
	m |= isZero(d>>(4*slotBits)&slotMask|(b[14]^low)|(b[15]^high)) << 4
	return bits.TrailingZeros64(m | 1<<inlineSlots)
}

func (b *bucket) inlineCode(slot int) uint64 { return b[0] >> (slotBits * uint(slot)) & slotMask }

// freeInline returns the first empty slot, or inlineSlots.
func (b *bucket) freeInline() int {
	// Adding 31 carries out of five bits unless all are 0; the sixth has room for it.
	carries := b[0]&(codeMask*everySlot) + codeMask*everySlot
	return min(lowestLane(^carries&((codeMask+1)*everySlot), slotBits), inlineSlots)
}

func (b *bucket) setInline(slot int, code, low, high uint64) {
	b[0] |= code << (slotBits * uint(slot))
	b[keyWord+2*slot], b[keyWord+2*slot+1] = low, high
}

// keyBytes are the most stored bytes of a key in a slot, and those of a shape's words.
const keyBytes = packedKeyWords * 8

// keyAt returns the stored bytes of a short key, zero padded, or with a shape's words behind it.
func (t *table) keyAt(b *bucket, slot int) (key [keyBytes]byte) {
	words := b[keyWord+2*slot:][:inlineBytes/8]
	if t.packed {
		words = b.packedWords(slot)
	}
	for i, word := range words {
		binary.LittleEndian.PutUint64(key[8*i:], word)
	}
	return key
}

// A bucket of the long table has the meta, seven TATs, seven locators, and a word with eight bits of each
// key's hash, so that few other keys are compared.
//
// The meta has eight bits a slot: two for the key's place (0: empty), four for its kind, two marks of
// changes.
const (
	longSlots   = 7
	locatorWord = tatWord + longSlots // of the first slot
	hashesWord  = 15

	laneBits  = 8
	everyLane = 1 | 1<<8 | 1<<16 | 1<<24 | 1<<32 | 1<<40 | 1<<48
	laneMask  = 1<<laneBits - 1

	placeMask     = 3
	placeArena    = 1 // in the segment's arena
	placeLarge    = 2 // in its own buffer
	laneKindShift = 2
	laneKindBits  = 4
	laneKindMask  = 1<<laneKindBits - 1
	// plainMask and placeArena identify a funnel in an arena.
	plainMask = laneKindMask<<laneKindShift | placeMask
)

// More kinds than fit do not compile: they would overwrite the marks.
const _ = uint(laneKindMask + 1 - limiter.Kinds)

// hashLane returns the bucket's bits of a hash: not used by the directory, and hardly by homeOf.
func hashLane(hash uint64) uint64 { return hash >> 8 & laneMask }

// candidates sets the highest bit of each used lane with the same bits of the hash.
func (b *bucket) candidates(hash uint64) uint64 {
	d := b[hashesWord] ^ hashLane(hash)*everyLane
	// Adding 127 to seven bits carries into the eighth unless they are 0.
	const low = laneMask >> 1 * everyLane
	return ^(d&low + low | d) & (b.usedLanes() << (laneBits - 1))
}

// usedLanes sets the lowest bit of each used lane.
func (b *bucket) usedLanes() uint64 { return (b[0] | b[0]>>1) & everyLane }

func (b *bucket) place(slot int) uint64 { return b[0] >> (laneBits * uint(slot)) & placeMask }

// kind returns an entry's kind; entries of the inline table are funnels.
func (b *bucket) kind(slot int) limiter.Kind {
	return limiter.Kind(b[0] >> (laneBits*uint(slot) + laneKindShift) & laneKindMask)
}

func (b *bucket) setKind(slot int, kind limiter.Kind) {
	lane := laneBits * uint(slot)
	b[0] = b[0]&^(laneKindMask<<laneKindShift<<lane) | laneKind(kind)<<lane
}

func laneKind(kind limiter.Kind) uint64 { return uint64(kind) & laneKindMask << laneKindShift }

func (b *bucket) lane(slot int) uint64 { return b[0] >> (laneBits * uint(slot)) & laneMask }

// freeLong returns the first empty slot, or longSlots.
func (b *bucket) freeLong() int {
	return min(lowestLane(^b.usedLanes()&everyLane, laneBits), longSlots)
}

func (b *bucket) setLong(slot int, lane, hash, locator uint64) {
	b[0] |= lane << (laneBits * uint(slot))
	b[hashesWord] = b[hashesWord]&^(laneMask<<(laneBits*uint(slot))) | hashLane(hash)<<(laneBits*uint(slot))
	b[locatorWord+slot] = locator
}

func (b *bucket) locator(slot int) uint64 { return b[locatorWord+slot] }

package shard

import "cellserver/internal/limiter"

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

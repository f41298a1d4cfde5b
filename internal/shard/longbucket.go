package shard

import "cellserver/internal/limiter"

// In a bucket of the long table, behind the meta and the TATs of seven slots, stand their locators, and in the last word eight
// bits of each key's hash, so that hardly another key than the wanted is looked at.
//
// The meta is eight bits a slot. Two say where the key stands (0: the slot is empty), and four are its kind. Two are
// for marks of entries that have changed.
const (
	longSlots   = 7
	locatorWord = tatWord + longSlots // of the first slot
	hashesWord  = 15

	laneBits  = 8
	everyLane = 1 | 1<<8 | 1<<16 | 1<<24 | 1<<32 | 1<<40 | 1<<48
	laneMask  = 1<<laneBits - 1

	placeMask     = 3
	placeArena    = 1 // in the segment's arena
	placeAlone    = 2 // in a buffer of its own
	laneKindShift = 2
	laneKindBits  = 4
	laneKindMask  = 1<<laneKindBits - 1
	// plainMask are the bits by which a funnel in an arena, with placeArena, is told from all others.
	plainMask = laneKindMask<<laneKindShift | placeMask
)

// More kinds than fit do not compile: they would set the marks.
const _ = uint(laneKindMask + 1 - limiter.Kinds)

// hashLane is what a bucket keeps of a hash: bits that the directory does not look at, and homeOf hardly.
func hashLane(hash uint64) uint64 { return hash >> 8 & laneMask }

// candidates has the highest bit of a slot's lane set for each slot in use that has the same bits of its hash.
func (b *bucket) candidates(hash uint64) uint64 {
	d := b[hashesWord] ^ hashLane(hash)*everyLane
	// Adding 127 to seven bits carries into the eighth unless they are 0.
	const low = laneMask >> 1 * everyLane
	return ^(d&low + low | d) & (b.usedLanes() << (laneBits - 1))
}

// usedLanes has the lowest bit of a slot's lane set for each slot in use.
func (b *bucket) usedLanes() uint64 { return (b[0] | b[0]>>1) & everyLane }

func (b *bucket) place(slot int) uint64 { return b[0] >> (laneBits * uint(slot)) & placeMask }

// kind returns the kind of an entry of the long table; all of the other are funnels.
func (b *bucket) kind(slot int) limiter.Kind {
	return limiter.Kind(b[0] >> (laneBits*uint(slot) + laneKindShift) & laneKindMask)
}

func (b *bucket) setKind(slot int, kind limiter.Kind) {
	lane := laneBits * uint(slot)
	b[0] = b[0]&^(laneKindMask<<laneKindShift<<lane) | laneKind(kind)<<lane
}

// laneKind returns a kind as it stands in a lane.
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

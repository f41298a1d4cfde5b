package shard

import (
	"encoding/binary"
	"math/bits"
)

// In a bucket of inline keys, behind the meta and the TATs of five slots, stand the keys, two words each: low and high of
// keyRef. The first cache line holds all that is read of most keys that are not there, and of one in five that are.
//
// The meta is 12 bits a slot. Five say how long the key is (0: the slot is empty), and one is set where the key has a
// database's number in front. Two are for marks of entries that have changed; four are spare. All entries are funnels. An
// entry is removed by clearing its bits, and no other moves.
const (
	inlineSlots = 5
	keyWord     = tatWord + inlineSlots // of the first slot

	slotBits  = 12
	everySlot = 1 | 1<<slotBits | 1<<(2*slotBits) | 1<<(3*slotBits) | 1<<(4*slotBits)
	slotMask  = 1<<slotBits - 1

	codeMask     = 0x1f
	codeEmptyKey = 1 // and one more for each byte of a key
	bitOtherDB   = 1 << 8
	identityMask = codeMask | bitOtherDB
)

// match returns the slot of a key, or inlineSlots. It compares all five without a branch: which of them it is cannot be
// foretold.
func (b *bucket) match(code, low, high uint64) int {
	d := (b[0] ^ code*everySlot) & (identityMask * everySlot)
	m := isZero(d&slotMask | (b[6] ^ low) | (b[7] ^ high))
	m |= isZero(d>>slotBits&slotMask|(b[8]^low)|(b[9]^high)) << 1
	m |= isZero(d>>(2*slotBits)&slotMask|(b[10]^low)|(b[11]^high)) << 2
	m |= isZero(d>>(3*slotBits)&slotMask|(b[12]^low)|(b[13]^high)) << 3
	m |= isZero(d>>(4*slotBits)&slotMask|(b[14]^low)|(b[15]^high)) << 4
	return bits.TrailingZeros64(m | 1<<inlineSlots)
}

// inlineCode returns a slot's 12 bits.
func (b *bucket) inlineCode(slot int) uint64 { return b[0] >> (slotBits * uint(slot)) & slotMask }

// freeInline returns the first empty slot, or inlineSlots.
func (b *bucket) freeInline() int {
	// Adding 31 carries out of five bits unless they are all 0; the sixth has room for it.
	carries := b[0]&(codeMask*everySlot) + codeMask*everySlot
	return min(lowestLane(^carries&((codeMask+1)*everySlot), slotBits), inlineSlots)
}

func (b *bucket) setInline(slot int, code, low, high uint64) {
	b[0] |= code << (slotBits * uint(slot))
	b[keyWord+2*slot], b[keyWord+2*slot+1] = low, high
}

// inlineKey returns what is stored of a key, zero padded.
func (b *bucket) inlineKey(slot int) (key [inlineBytes]byte) {
	binary.LittleEndian.PutUint64(key[:], b[keyWord+2*slot])
	binary.LittleEndian.PutUint64(key[8:], b[keyWord+2*slot+1])
	return key
}

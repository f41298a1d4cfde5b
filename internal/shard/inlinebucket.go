package shard

import (
	"encoding/binary"
	"math/bits"
)

// A bucket of inline keys has the meta, five TATs, and five keys of two words, low and high of keyRef. The
// first cache line suffices for most absent keys and a fifth of the present ones.
//
// The meta has 12 bits a slot: five for the key's length (0: empty), one for a database number before the
// key, two marks of changes, four spare. All entries are funnels. Clearing its bits removes an entry; no
// other moves.
const (
	inlineSlots = 5
	keyWord     = tatWord + inlineSlots // of the first slot

	slotBits  = 12
	everySlot = 1 | 1<<slotBits | 1<<(2*slotBits) | 1<<(3*slotBits) | 1<<(4*slotBits)
	slotMask  = 1<<slotBits - 1

	codeMask     = 0x1f
	codeEmptyKey = 1 // plus one for each byte of a key
	bitOtherDB   = 1 << 8
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

// inlineKey returns a key's stored bytes, zero padded.
func (b *bucket) inlineKey(slot int) (key [inlineBytes]byte) {
	binary.LittleEndian.PutUint64(key[:], b[keyWord+2*slot])
	binary.LittleEndian.PutUint64(key[8:], b[keyWord+2*slot+1])
	return key
}

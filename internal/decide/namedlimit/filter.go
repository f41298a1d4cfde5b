package namedlimit

import (
	"encoding/binary"
	"math/bits"
)

// filter tells most keys without an override by two bits of a word, in a table small enough for the
// processor's cache, as a map is not. Its hash has no secret: whoever finds keys with both bits pays for a
// lookup in the map.
type filter []uint64 // a power of two of words

const filterBitsPerKey = 16

func newFilter(keys int) filter {
	return make(filter, 1<<bits.Len(uint(max(keys*filterBitsPerKey/64, 1)-1)))
}

func (f filter) add(key []byte) {
	at, mask := f.place(key)
	f[at] |= mask
}

func (f filter) mayHave(key []byte) bool {
	if len(f) == 0 {
		return false
	}
	at, mask := f.place(key)
	return f[at]&mask == mask
}

// place returns a key's word and its bits.
func (f filter) place(key []byte) (at, mask uint64) {
	h := hashOf(key)
	return h >> 12 & uint64(len(f)-1), 1<<(h&63) | 1<<(h>>6&63)
}

// hashOf mixes a key's length and bytes.
func hashOf(key []byte) uint64 {
	const odd1, odd2 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f // 2^64 by the golden ratio, and xxHash's second prime
	h := uint64(len(key)) * odd2
	for len(key) > 8 {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(key)*odd1, 31) * odd2
		key = key[8:]
	}
	last := uint64(0)
	if len(key) == 8 {
		last = binary.LittleEndian.Uint64(key)
	} else {
		for _, c := range key {
			last = last<<8 | uint64(c)
		}
	}
	h = (h ^ last) * odd1
	h ^= h >> 29
	h *= odd2
	return h ^ h>>32
}

package shard

import (
	"encoding/binary"
	"hash/maphash"

	"cellserver/internal/store"
)

const inlineBytes = 16 // the longest key that stands in its slot

// keyRef is a key as a table looks it up. It is passed by value, in registers: on the way through memory, small stores and
// wider loads would wait for each other.
type keyRef struct {
	hash      uint64
	low, high uint64 // what is stored of an inline key, zero padded
	code      uint64 // the slot's identity bits in the bucket's meta, and bitLong
}

const bitLong = 1 << 16

// hashKey is a function of the key alone, so that entries need not keep their hashes. The multiplier is 2^64
// divided by the golden ratio: it spreads a database's number over all bits.
func hashKey(seed maphash.Seed, db uint16, name []byte) uint64 {
	return maphash.Bytes(seed, name) ^ uint64(db)*0x9e3779b97f4a7c15
}

func refOf(key *store.Key, hash uint64) keyRef {
	if n := len(key.Name); key.DB == 0 && n <= inlineBytes {
		low, high := wordsOf(key.Name)
		return keyRef{hash, low, high, codeEmptyKey + uint64(n)}
	}
	return otherRef(key, hash)
}

// otherRef is refOf for the keys of other databases, and long ones.
func otherRef(key *store.Key, hash uint64) keyRef {
	switch {
	case isInline(key):
		low, high := wordsOf(key.Name)
		return keyRef{hash, low<<16 | uint64(key.DB), high<<16 | low>>48, codeEmptyKey + uint64(len(key.Name)+2) | bitOtherDB}
	case len(key.Name) <= arenaKeyBytes:
		return keyRef{hash: hash, code: bitLong | placeArena}
	}
	return keyRef{hash: hash, code: bitLong | placeAlone}
}

func (k keyRef) isLong() bool { return k.code&bitLong != 0 }

// place says where a long key stands.
func (k keyRef) place() uint64 { return k.code & placeMask }

func (k keyRef) isAlone() bool { return k.isLong() && k.place() == placeAlone }

// isInline says whether a key stands in its slot, behind the two bytes of its database's number where that is not 0.
func isInline(key *store.Key) bool {
	if key.DB == 0 {
		return len(key.Name) <= inlineBytes
	}
	return len(key.Name)+2 <= inlineBytes
}

// wordsOf returns up to 16 bytes as two little-endian words, zero padded. Loads that overlap stand in for a loop
// over bytes.
func wordsOf(name []byte) (low, high uint64) {
	le := binary.LittleEndian
	n := len(name)
	switch {
	case n >= 8:
		// What the two loads have in common is shifted out of the second.
		return le.Uint64(name), le.Uint64(name[n-8:]) >> (8 * (16 - uint(n)))
	case n >= 4:
		return uint64(le.Uint32(name)) | uint64(le.Uint32(name[n-4:]))<<(8*uint(n-4)), 0
	case n > 0:
		// The first, the middle and the last are all there are of up to three.
		return uint64(name[0]) | uint64(name[n/2])<<(8*uint(n/2)) | uint64(name[n-1])<<(8*uint(n-1)), 0
	}
	return 0, 0
}

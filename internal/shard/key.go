package shard

import (
	"encoding/binary"
	"hash/maphash"

	"cellserver/internal/store"
)

const inlineBytes = 16 // the longest key that stands in its slot

// keyRef is a key as a table looks it up: as it would be stored. What is stored of a key is its name, behind the
// two bytes of its database's number where that is not 0. It is passed by value, in registers: on the way through
// memory, small stores and wider loads would wait for each other.
type keyRef struct {
	hash      uint64
	low, high uint64 // what is stored, zero padded; of a long key, the hash and nothing
	code      uint64 // the slot's identity bits in the bucket's meta
}

// hashKey is a function of what is stored, so that entries need not keep their hashes. The multiplier is 2^64
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

// otherRef is refOf for the keys that are rarer: those of other databases, and long ones.
func otherRef(key *store.Key, hash uint64) keyRef {
	k := keyRef{hash: hash}
	n := storedBytes(key)
	switch {
	case n <= inlineBytes:
		low, high := wordsOf(key.Name)
		k.low, k.high, k.code = low<<16|uint64(key.DB), high<<16|low>>48, codeEmptyKey+uint64(n)
	case n <= arenaKeyBytes:
		k.low, k.code = hash, codeInArena
	default:
		k.low, k.code = hash, codeAlone
	}
	if key.DB != 0 {
		k.code |= bitOtherDB
	}
	return k
}

func (k keyRef) isLong() bool { return isLong(k.code) }

func storedBytes(key *store.Key) int {
	if key.DB == 0 {
		return len(key.Name)
	}
	return len(key.Name) + 2
}

// appendStored appends what is stored of a key.
func appendStored(buf []byte, key *store.Key) []byte {
	if key.DB != 0 {
		buf = binary.LittleEndian.AppendUint16(buf, key.DB)
	}
	return append(buf, key.Name...)
}

func isStored(key *store.Key, stored []byte) bool {
	db, name := splitStored(stored, key.DB != 0)
	return db == key.DB && string(name) == string(key.Name)
}

func splitStored(stored []byte, otherDB bool) (db uint16, name []byte) {
	if !otherDB {
		return 0, stored
	}
	return binary.LittleEndian.Uint16(stored), stored[2:]
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

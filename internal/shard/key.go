package shard

import (
	"encoding/binary"
	"hash/maphash"
)

const inlineBytes = 16 // the longest key that stands in its slot

// keyRef is a key as a table looks it up: as it would be stored. What is stored of a key is its name, behind the
// two bytes of its database's number where that is not 0.
type keyRef struct {
	hash  uint64
	words [2]uint64 // what is stored, zero padded; of a long key, the hash in the first
	code  uint64    // the slot's identity bits in the bucket's meta
	name  []byte
	db    uint16
}

// hashKey is a function of what is stored, so that entries need not keep their hashes. The multiplier is 2^64
// divided by the golden ratio: it spreads a database's number over all bits.
func hashKey(seed maphash.Seed, db uint16, name []byte) uint64 {
	return maphash.Bytes(seed, name) ^ uint64(db)*0x9e3779b97f4a7c15
}

func refOf(key *Key, hash uint64) keyRef {
	k := keyRef{hash: hash, name: key.Name, db: key.DB}
	n := len(key.Name)
	if key.DB == 0 && n <= inlineBytes {
		k.words[0], k.words[1] = wordsOf(key.Name)
		k.code = codeEmptyKey + uint64(n)
		return k
	}
	k.encodeOther()
	return k
}

// encodeOther is refOf for the keys that are rarer: those of other databases, and long ones.
func (k *keyRef) encodeOther() {
	n := k.storedBytes()
	switch {
	case n <= inlineBytes:
		low, high := wordsOf(k.name)
		k.words = [2]uint64{low<<16 | uint64(k.db), high<<16 | low>>48}
		k.code = codeEmptyKey + uint64(n)
	case n <= arenaKeyBytes:
		k.words[0], k.code = k.hash, codeInArena
	default:
		k.words[0], k.code = k.hash, codeAlone
	}
	if k.db != 0 {
		k.code |= bitOtherDB
	}
}

func (k *keyRef) storedBytes() int {
	if k.db == 0 {
		return len(k.name)
	}
	return len(k.name) + 2
}

// appendStored appends what is stored of a long key.
func (k *keyRef) appendStored(buf []byte) []byte {
	if k.db != 0 {
		buf = binary.LittleEndian.AppendUint16(buf, k.db)
	}
	return append(buf, k.name...)
}

func (k *keyRef) isStored(stored []byte) bool {
	db, name := splitStored(stored, k.db != 0)
	return db == k.db && string(name) == string(k.name)
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

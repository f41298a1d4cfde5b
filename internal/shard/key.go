package shard

import (
	"encoding/binary"
	"hash/maphash"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const inlineBytes = 16 // longest inline key

// keyRef is a key for lookups. It is passed by value, in registers: through memory, small stores would stall
// wider loads.
type keyRef struct {
	hash      uint64
	low, high uint64 // an inline key's bytes, zero padded
	code      uint64 // identity bits in the meta, and bitLong
}

const bitLong = 1 << 16

// hashKey depends on the key alone, so that entries need not store hashes. The multiplier, 2^64 divided by
// the golden ratio, spreads the database number over all bits.
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

// otherRef is refOf for long keys and those of other databases.
func otherRef(key *store.Key, hash uint64) keyRef {
	if isInline(key) {
		low, high := wordsOf(key.Name)
		return keyRef{hash, low<<16 | uint64(key.DB), high<<16 | low>>48, codeEmptyKey + uint64(len(key.Name)+2) | bitOtherDB}
	}
	return keyRef{hash: hash, code: bitLong}
}

func (k keyRef) isLong() bool { return k.code&bitLong != 0 }

// isInline reports whether a key without a payload fits into a slot, preceded by two bytes for a database
// other than 0.
func isInline(key *store.Key) bool { return isShort(key.DB, len(key.Name)) }

// fitsPacked reports whether a key fits into a slot of the packed table beside so many words of a shape.
func fitsPacked(db uint16, nameBytes, words int) bool {
	if db != 0 {
		nameBytes += 2
	}
	return nameBytes <= min(packedBytes, keyBytes-8*words)
}

func isShort(db uint16, nameBytes int) bool {
	return nameBytes <= inlineBytes && (db == 0 || nameBytes <= inlineBytes-2)
}

// wordsOf returns up to 16 bytes as two zero-padded little-endian words. Overlapping loads replace a loop
// over bytes.
func wordsOf(name []byte) (low, high uint64) {
	le := binary.LittleEndian
	n := len(name)
	switch {
	case n >= 8:
		// The shift removes the overlap from the second load.
		return le.Uint64(name), le.Uint64(name[n-8:]) >> (8 * (16 - uint(n)))
	case n >= 4:
		return uint64(le.Uint32(name)) | uint64(le.Uint32(name[n-4:]))<<(8*uint(n-4)), 0
	case n > 0:
		// First, middle and last byte cover up to three.
		return uint64(name[0]) | uint64(name[n/2])<<(8*uint(n/2)) | uint64(name[n-1])<<(8*uint(n-1)), 0
	}
	return 0, 0
}

func (t *table) hashAt(b *bucket, slot int) uint64 {
	if t.long {
		return t.longHashAt(b, slot)
	}
	code, key := b.inlineCode(slot), t.keyAt(b, slot)
	n := code&codeMask - codeEmptyKey
	if code&bitOtherDB == 0 {
		return maphash.Bytes(t.seed, key[:n&31])
	}
	return hashKey(t.seed, t.dbAt(b, slot), key[2:n])
}

func (t *table) longHashAt(b *bucket, slot int) uint64 {
	at := b.locator(slot)
	switch {
	case b.kind(slot) != limiter.Funnel:
		return t.stateHashAt(b, slot)
	case b.place(slot) == placeLarge:
		return binary.LittleEndian.Uint64(t.large.bufs[numberOf(at)])
	case lengthOf(at) > plainBytes:
		return t.recordHash(at)
	}
	return hashKey(t.seed, dbOf(at), t.record(at))
}

func (t *table) dbAt(b *bucket, slot int) uint16 {
	switch {
	case t.long:
		return dbOf(b.locator(slot))
	case b.inlineCode(slot)&bitOtherDB != 0:
		key := t.keyAt(b, slot)
		return binary.LittleEndian.Uint16(key[:])
	}
	return 0
}

func (t *table) nameBytesAt(b *bucket, slot int) int {
	if t.long {
		return t.longNameBytesAt(b, slot)
	}
	code := b.inlineCode(slot)
	n := int(code&codeMask - codeEmptyKey)
	if code&bitOtherDB != 0 {
		n -= 2
	}
	return n
}

func (t *table) longNameBytesAt(b *bucket, slot int) (n int) {
	switch {
	case b.kind(slot) != limiter.Funnel:
		r := t.recordAt(b, slot)
		return r.payload - r.name
	case b.place(slot) == placeLarge:
		n = len(t.large.bufs[numberOf(b.locator(slot))])
	default:
		n = lengthOf(b.locator(slot))
	}
	if n > plainBytes {
		n -= hashBytes
	}
	return n
}

func (t *table) appendName(buf []byte, b *bucket, slot int) []byte {
	if t.long {
		return append(buf, t.nameAt(b, slot)...)
	}
	code, key := b.inlineCode(slot), t.keyAt(b, slot)
	first := 0
	if code&bitOtherDB != 0 {
		first = 2
	}
	return append(buf, key[first:code&codeMask-codeEmptyKey]...)
}

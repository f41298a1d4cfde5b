package shard

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A bucket of the packed table has the meta of inline keys, three TATs, and four words for each: a key of up
// to 30 bytes, and from behind the words of its shape. The words that a longer key fills are no shape's.
const (
	packedSlots     = 3
	packedKeyWords  = 4
	packedBytes     = codeMask - codeEmptyKey // longest key
	packedWord      = tatWord + packedSlots   // of the first slot
	everyPackedSlot = 1 | 1<<slotBits | 1<<(2*slotBits)
)

func lastPackedWord(slot int) int { return packedWord + packedKeyWords*slot + packedKeyWords - 1 }

// packedKey is a key for lookups in the packed table.
type packedKey struct {
	code  uint64
	words [packedKeyWords]uint64
	masks [packedKeyWords / 2]uint64 // of the last words: set where the key has bytes
}

// packedKeyOf returns a key that fits.
func packedKeyOf(k keyRef, key *store.Key) (p packedKey) {
	if !k.isLong() {
		p.code, p.words[0], p.words[1] = k.code, k.low, k.high
		return p
	}
	name, n := key.Name, len(key.Name)
	if key.DB != 0 {
		var joined [packedBytes]byte
		binary.LittleEndian.PutUint16(joined[:], key.DB)
		n = 2 + copy(joined[2:], name)
		name, p.code = joined[:n], bitOtherDB
	}
	p.code |= codeEmptyKey + uint64(n)
	p.words[0], p.words[1] = wordsOf(name[:inlineBytes])
	p.words[2], p.words[3] = wordsOf(name[inlineBytes:])
	p.masks[0] = ^uint64(0)
	if n > inlineBytes+8 {
		p.masks[1] = ^uint64(0)
	}
	return p
}

// matchPacked is match for a bucket of the packed table.
func (b *bucket) matchPacked(p *packedKey) int {
	d := (b[0] ^ p.code*everyPackedSlot) & (identityMask * everyPackedSlot)
	m := uint64(1) << packedSlots
	for slot := range packedSlots {
		at := packedWord + packedKeyWords*slot
		m |= isZero(d>>(slotBits*uint(slot))&slotMask|(b[at]^p.words[0])|(b[at+1]^p.words[1])|
			(b[at+2]^p.words[2])&p.masks[0]|(b[at+3]^p.words[3])&p.masks[1]) << slot
	}
	return bits.TrailingZeros64(m)
}

// freePacked returns the first empty slot, or packedSlots.
func (b *bucket) freePacked() int { return min(b.freeInline(), packedSlots) }

// setPacked fills a slot. Words behind the key's are a shape's, which setWords sets.
func (b *bucket) setPacked(slot int, code uint64, words []uint64) {
	b[0] |= code << (slotBits * uint(slot))
	copy(b[packedWord+packedKeyWords*slot:], words[:packedKeyWords])
}

func (b *bucket) packedWords(slot int) []uint64 {
	at := packedWord + packedKeyWords*slot
	return b[at : at+packedKeyWords]
}

// findPacked is findInline for the packed table.
func (t *table) findPacked(k keyRef, key *store.Key) (*bucket, int) {
	seg, i := t.segmentFor(k.hash), homeOf(k.hash)
	if seg == nil || seg.used == 0 || !fitsPacked(key.DB, len(key.Name), 0) {
		return nil, 0
	}
	p := packedKeyOf(k, key)
	for range segmentBuckets {
		b := &seg.buckets[i]
		if slot := b.matchPacked(&p); slot < packedSlots {
			return b, slot
		}
		if !b.passed() {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0
}

// wordsAt returns an entry's words, which fill its place in the packed table from behind.
func (t *table) wordsAt(b *bucket, slot int, f *limiter.Shape) (w limiter.Words) {
	if t.packed {
		for i := range min(f.Words(), len(w)) {
			w[i] = b[lastPackedWord(slot)-i]
		}
	}
	return w
}

func (b *bucket) setWords(slot int, w limiter.Words, n int) {
	for i := range min(n, len(w)) {
		b[lastPackedWord(slot)-i] = w[i]
	}
}

// appendShaped appends the payload of an entry of a shape.
func (t *table) appendShaped(buf []byte, b *bucket, slot, n int) []byte {
	f := &t.shapes.all[n]
	return f.AppendPayload(buf, b.tatNs(slot), t.wordsAt(b, slot, f))
}

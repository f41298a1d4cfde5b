package shard

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// item is the value to store for a key. Plain funnels of short keys are inline; all others are in the long
// table.
type item struct {
	ref       keyRef
	key       *store.Key
	kind      limiter.Kind
	expiresNs int64
	payload   []byte // nil for a funnel
	shape     int    // number of its shape, which is stored in place of the payload; 0 for none
	numWords  int    // of the shape
	words     limiter.Words
	spare     int  // space to reserve after the payload
	forced    bool // cannot be refused
}

func (sh *shard) itemOf(k keyRef, key *store.Key, s *limiter.State) item {
	it := item{ref: k, key: key, kind: s.Kind, expiresNs: s.ExpiresNs, payload: s.Payload}
	if s.Kind != limiter.Funnel {
		sh.pack(&it, s)
	}
	return it
}

func (it *item) isInline() bool {
	return !it.ref.isLong() && (it.kind == limiter.Funnel || it.shape > 0 && it.numWords == 0)
}

func (it *item) isPacked() bool { return it.shape > 0 && !it.isInline() }

// In the record of a state with a payload, a version precedes the name, and a word with the sizes follows it,
// with the payload's where it shares an arena: version: u64, sizes: u32. Spare room may follow the payload.
//
// Versions are unique within a table, so equal kind, word and version mean an unchanged state. Values have
// none in their records: the version is the payload's hash, as every byte of a counter's memory counts.
const (
	versionBytes = 8
	sizesBytes   = 4
	sizeBits     = 16 // of each of two
	// arenaStateBytes is the longest record with a payload in an arena: changes copy it, and growth leaves
	// garbage.
	arenaStateBytes = 512
	// growShare: a payload that grows by less than this share of itself gets as much spare room, and
	// leastSpare, to amortize copies.
	growShare  = 4
	leastSpare = 48
	wideBytes  = 128
)

func nameRecordBytes(nameBytes int) int {
	if nameBytes > plainBytes {
		return nameBytes + hashBytes
	}
	return nameBytes
}

// recordBytes returns the size of the record in the long table, without spare room.
func (it *item) recordBytes() int {
	n := nameRecordBytes(len(it.key.Name))
	switch it.kind {
	case limiter.Funnel:
	case limiter.Value:
		n += sizesBytes + len(it.payload)
	default:
		n += versionBytes + sizesBytes + len(it.payload)
	}
	return n
}

func (t *table) sizesAt() int {
	if t.values {
		return 0
	}
	return versionBytes
}

func (it *item) place() uint64 {
	if it.kind == limiter.Funnel && len(it.key.Name) <= arenaKeyBytes || it.kind != limiter.Funnel && it.recordBytes() <= arenaStateBytes {
		return placeArena
	}
	return placeLarge
}

// setSpare chooses the spare room for a payload that had before bytes.
func (it *item) setSpare(before int) {
	n := len(it.payload)
	if it.shape > 0 || n <= before || n-before > max(before/growShare, leastSpare) {
		return
	}
	if it.spare = max(n/growShare, leastSpare); it.place() == placeArena {
		it.spare = min(it.spare, arenaStateBytes-it.recordBytes())
	}
}

func (t *table) encode(buf []byte, it *item, place uint64) []byte {
	le, name := binary.LittleEndian, it.key.Name
	if it.kind != limiter.Funnel {
		sizes := uint32(len(name))
		if place == placeArena {
			sizes |= uint32(len(it.payload)) << sizeBits
		}
		if !t.values {
			t.versions++
			buf = le.AppendUint64(buf, t.versions)
		}
		buf = le.AppendUint32(buf, sizes)
	}
	if len(name) > plainBytes {
		buf = le.AppendUint64(buf, it.ref.hash)
	}
	buf = append(buf, name...)
	if it.kind == limiter.Funnel {
		return buf
	}
	return append(buf, it.payload...)
}

// record locates an entry with a payload: its spare room, name, payload and end.
type record struct {
	bytes              []byte
	name, payload, end int
	joined             bool // a copy, as the record spans two chunks
}

// recordAt returns the record of an entry with a payload; if joined, it is valid until the next call.
func (t *table) recordAt(b *bucket, slot int) (r record) {
	at := b.locator(slot)
	if b.place(slot) == placeLarge {
		buf := t.large.bufs[numberOf(at)]
		r.bytes, r.end = buf[:cap(buf)], len(buf)
		r.setParts(t.sizesAt(), int(binary.LittleEndian.Uint32(buf[t.sizesAt():])))
		return r
	}
	r.bytes, r.joined = t.record(at), offsetOf(at)+lengthOf(at) > chunkBytes
	sizes := int(binary.LittleEndian.Uint32(r.bytes[t.sizesAt():]))
	r.setParts(t.sizesAt(), sizes&(1<<sizeBits-1))
	r.end = r.payload + sizes>>sizeBits
	return r
}

// findRecord is findLong with the record, for a key of a kind with a payload.
func (t *table) findRecord(k keyRef, key *store.Key, kind limiter.Kind) (*bucket, int, record) {
	seg, i := t.segmentFor(k.hash), homeOf(k.hash)
	if seg == nil {
		return nil, 0, record{}
	}
	for range segmentBuckets {
		b := &seg.buckets[i]
		for found := b.candidates(k.hash); found != 0; found &= found - 1 {
			slot := lowestLane(found, laneBits)
			if b.kind(slot) != kind || dbOf(b.locator(slot)) != key.DB {
				continue
			}
			if r := t.recordAt(b, slot); string(r.bytes[r.name:r.payload]) == string(key.Name) {
				return b, slot, r
			}
		}
		if !b.passed() {
			break
		}
		i = nextBucket(i)
	}
	return nil, 0, record{}
}

func (r *record) setParts(sizesAt, nameBytes int) {
	r.name = sizesAt + sizesBytes + nameRecordBytes(nameBytes) - nameBytes
	r.payload = r.name + nameBytes
}

// nameAt returns an entry's name, valid until the next call.
func (t *table) nameAt(b *bucket, slot int) []byte {
	at := b.locator(slot)
	switch {
	case b.kind(slot) != limiter.Funnel:
		r := t.recordAt(b, slot)
		return r.bytes[r.name:r.payload]
	case b.place(slot) == placeLarge:
		return nameOf(t.large.bufs[numberOf(at)])
	}
	return nameOf(t.record(at))
}

// entryBytes returns an entry's bytes beyond its slot.
func (t *table) entryBytes(b *bucket, slot int) int {
	switch {
	case !t.long:
		return 0
	case b.place(slot) == placeLarge:
		return cap(t.large.bufs[numberOf(b.locator(slot))])
	}
	return lengthOf(b.locator(slot))
}

// payloadAt returns an entry's payload, valid until the next call.
func (t *table) payloadAt(b *bucket, slot int) []byte {
	if n := t.shape(b, slot); n > 0 {
		t.joined = t.appendShaped(t.joined[:0], b, slot, n)
		return t.joined
	}
	if t.kindAt(b, slot) == limiter.Funnel {
		return nil
	}
	r := t.recordAt(b, slot)
	return r.bytes[r.payload:r.end]
}

func (t *table) kindAt(b *bucket, slot int) limiter.Kind {
	switch {
	case t.long:
		return b.kind(slot)
	case b.inlineCode(slot)&shapeMask == 0:
		return limiter.Funnel
	case t.packed:
		return t.shapes.all[t.shape(b, slot)].Kind()
	}
	return limiter.Named
}

// versionAt returns the payload's version, 0 for a funnel.
func (t *table) versionAt(b *bucket, slot int) uint64 {
	switch {
	case t.shape(b, slot) > 0:
		f := &t.shapes.all[t.shape(b, slot)]
		return f.Version(t.wordsAt(b, slot, f))
	case t.kindAt(b, slot) == limiter.Funnel:
		return 0
	case t.values:
		return maphash.Bytes(t.seed, t.payloadAt(b, slot))
	}
	at := b.locator(slot)
	if b.place(slot) == placeLarge {
		return binary.LittleEndian.Uint64(t.large.bufs[numberOf(at)])
	}
	return t.recordHash(at) // the first word
}

func (t *table) stateHashAt(b *bucket, slot int) uint64 {
	r := t.recordAt(b, slot)
	if at := t.sizesAt() + sizesBytes; r.name > at {
		return binary.LittleEndian.Uint64(r.bytes[at:])
	}
	return hashKey(t.seed, dbOf(b.locator(slot)), r.bytes[r.name:r.payload])
}

// rewrite replaces an entry's payload, with a new version if it has changed. It returns false if the record
// is too small or far too large. The payload may be the record's own, changed in place.
func (t *table) rewrite(b *bucket, slot int, r *record, payload []byte, changed bool) bool {
	end := r.payload + len(payload)
	if end > len(r.bytes) || changed && isWide(len(r.bytes), end) {
		return false
	}
	if len(payload) > 0 && &payload[0] != &r.bytes[r.payload] {
		copy(r.bytes[r.payload:], payload)
	}
	if changed && !t.values {
		t.versions++
		binary.LittleEndian.PutUint64(r.bytes, t.versions)
	}
	at := b.locator(slot)
	if b.place(slot) == placeLarge {
		if end != r.end {
			t.large.bufs[numberOf(at)] = r.bytes[:end]
		}
		return true
	}
	if end != r.end {
		binary.LittleEndian.PutUint32(r.bytes[t.sizesAt():], uint32(r.payload-r.name)|uint32(len(payload))<<sizeBits)
	}
	if r.joined {
		t.overwrite(at, r.bytes)
	}
	return true
}

// isWide reports whether a record's spare room makes moving pay.
func isWide(bytes, used int) bool { return bytes > 4*used+wideBytes }

// overwrite writes back a record that spans two chunks.
func (t *table) overwrite(locator uint64, record []byte) {
	chunk := t.chunks.at(chunkOf(locator))
	for rest := record[copy(chunk[offsetOf(locator):], record):]; len(rest) > 0; {
		chunk = t.chunks.at(chunk.next())
		rest = rest[copy(chunk[headerBytes:], rest):]
	}
}

// find returns the bucket and slot of a key, or nil.
func (t *table) find(k keyRef, key *store.Key) (*bucket, int) {
	switch {
	case t.long:
		return t.findLong(k, key)
	case t.packed:
		return t.findPacked(k, key)
	}
	return t.findInline(k)
}

// withRoom returns a record with bytes of room after it.
func withRoom(record []byte, bytes int) []byte {
	return slices.Grow(record, bytes)[:len(record)+bytes]
}

package shard

import (
	"encoding/binary"
	"slices"

	"cellserver/internal/limiter"
)

// arenaKeyBytes is the longest funnel name in an arena, which bounds a copy. Longer ones get a buffer.
const arenaKeyBytes = 4096

// An arena holds a segment's records of long keys and payloads, one after another in a chain of chunks. A
// long record may continue in the next chunk; a short one does not, so that one access finds it. A removed
// record leaves garbage until squeeze closes the gaps.
//
// So an arena's free space is below a chunk and its garbage below a fixed share, and the next arena reuses
// its chunks without the collector.
type arena struct {
	first, last uint32 // 0 for none
	bytes       uint32 // of records and garbage
	garbage     uint32
}

const (
	// garbageShare: an arena is squeezed when this share of its bytes, and a chunk's worth, is garbage.
	garbageShare = 8
	// wholeBytes is the longest record that is not split; the padding stays below paddingShare.
	wholeBytes   = 48
	paddingShare = 20
)

func (a *arena) liveBytes() int { return int(a.bytes - a.garbage) }

func (a *arena) length() int { return ceilDiv(int(a.bytes), roomBytes) }

// free returns the free bytes of the last chunk.
func (a *arena) free() int { return a.length()*roomBytes - int(a.bytes) }

func (a *arena) moreChunks(bytes int) int {
	free := a.free()
	if bytes <= wholeBytes && free < bytes {
		free = 0
	}
	return ceilDiv(max(0, bytes-free), roomBytes)
}

// isWasteful reports whether squeezing pays.
func (a *arena) isWasteful() bool {
	return a.garbage >= roomBytes && a.garbage >= a.bytes/garbageShare || a.garbage > 0 && a.garbage == a.bytes
}

// A name of more than plainBytes, in an arena or a large record, is preceded by its hash, so that rehashing
// need not read it.
const (
	plainBytes = 128
	hashBytes  = 8
)

func nameOf(record []byte) []byte {
	if len(record) > plainBytes {
		return record[hashBytes:]
	}
	return record
}

// A locator consists of a record's first chunk, the place there, the length and the key's database. For a
// large record, the number of its buffer replaces the place.
const (
	dbBits     = 16
	lengthBits = 13
	offsetBits = 10
	chunkShift = dbBits + lengthBits + offsetBits
)

func locatorOf(chunk uint32, offset, length int, db uint16) uint64 {
	return uint64(chunk)<<chunkShift | uint64(offset)<<(dbBits+lengthBits) | uint64(length)<<dbBits | uint64(db)
}

func chunkOf(locator uint64) uint32 { return uint32(locator >> chunkShift) }

func offsetOf(locator uint64) int { return int(locator >> (dbBits + lengthBits) & (1<<offsetBits - 1)) }

func lengthOf(locator uint64) int { return int(locator >> dbBits & (1<<lengthBits - 1)) }

func dbOf(locator uint64) uint16 { return uint16(locator) }

func largeLocator(number uint32, db uint16) uint64 { return uint64(number)<<dbBits | uint64(db) }

func numberOf(locator uint64) uint32 { return uint32(locator >> dbBits) }

// record returns a record, valid until the next call.
func (t *table) record(locator uint64) []byte {
	chunk, offset, length := t.chunks.at(chunkOf(locator)), offsetOf(locator), lengthOf(locator)
	if offset+length <= chunkBytes {
		return chunk[offset : offset+length]
	}
	t.joined = append(t.joined[:0], chunk[offset:]...)
	for len(t.joined) < length {
		chunk = t.chunks.at(chunk.next())
		t.joined = append(t.joined, chunk[headerBytes:min(chunkBytes, headerBytes+length-len(t.joined))]...)
	}
	return t.joined
}

// recordHash returns the hash before a record.
func (t *table) recordHash(locator uint64) uint64 {
	return binary.LittleEndian.Uint64(t.record(locatorOf(chunkOf(locator), offsetOf(locator), hashBytes, 0)))
}

func (t *table) appendItem(seg *segment, it *item) (locator uint64) {
	if seg.arena.isWasteful() && seg.arena.moreChunks(it.recordBytes()+it.spare) > 0 {
		t.squeeze(seg)
	}
	if it.kind == limiter.Funnel && len(it.key.Name) <= plainBytes {
		return t.appendRecord(&seg.arena, it.key.Name, it.key.DB)
	}
	t.joined = withRoom(t.encode(t.joined[:0], it, placeArena), it.spare)
	return t.appendRecord(&seg.arena, t.joined, it.key.DB)
}

func (t *table) appendRecord(a *arena, record []byte, db uint16) (locator uint64) {
	if padding := a.free(); padding < len(record) && len(record) <= wholeBytes {
		a.bytes += uint32(padding)
		a.garbage += uint32(padding)
	}
	for rest := record; len(rest) > 0; {
		free := a.free()
		if free == 0 {
			t.extend(a)
			free = roomBytes
		}
		offset := chunkBytes - free
		if len(rest) == len(record) {
			locator = locatorOf(a.last, offset, len(record), db)
		}
		n := copy(t.chunks.at(a.last)[offset:], rest)
		a.bytes += uint32(n)
		rest = rest[n:]
	}
	return locator
}

// extend moves on to the arena's next chunk, and takes one if there is none.
func (t *table) extend(a *arena) {
	next := a.first
	if a.bytes > 0 {
		next = t.chunks.at(a.last).next()
	}
	if next == 0 {
		next = t.chunks.take()
		c := t.chunks.at(next)
		c.setNext(0)
		c.setPlace(a.length())
		if a.bytes == 0 {
			a.first = next
		} else {
			t.chunks.at(a.last).setNext(next)
		}
	}
	a.last = next
}

// squeeze closes the gaps of a segment's arena. Records only move towards the start.
func (t *table) squeeze(seg *segment) {
	a := &seg.arena
	if a.garbage == 0 {
		return
	}
	var found [segmentBuckets * longSlots]uint64 // positions of the records and their indexes
	n := 0
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range longSlots {
			if b.place(slot) == placeArena {
				chunk := t.chunks.at(chunkOf(b.locator(slot)))
				found[n] = uint64(chunk.place()*chunkBytes+offsetOf(b.locator(slot)))<<indexBits | indexOf(i, slot)
				n++
			}
		}
	}
	slices.Sort(found[:n])
	a.bytes, a.garbage = 0, 0
	for _, f := range found[:n] {
		b, slot := seg.entryAt(f)
		at := b.locator(slot)
		b[locatorWord+slot] = t.appendRecord(a, t.record(at), dbOf(at))
	}
	t.trim(a)
}

// trim returns unused chunks.
func (t *table) trim(a *arena) {
	if a.bytes == 0 {
		t.chunks.giveChain(a.first)
		*a = arena{}
		return
	}
	last := t.chunks.at(a.last)
	t.chunks.giveChain(last.next())
	last.setNext(0)
}

// tidy squeezes a segment's arena if that pays.
func (t *table) tidy(seg *segment) {
	if seg.arena.isWasteful() {
		t.squeeze(seg)
	}
}

// pack returns an arena's unused chunks, and moves the others together if many chunks are free.
func (t *table) pack(seg *segment) {
	if a := &seg.arena; ceilDiv(a.liveBytes()+a.liveBytes()/paddingShare, roomBytes) < a.length() {
		t.squeeze(seg)
	}
	if t.chunks.isSparse() {
		t.gather(seg)
	}
}

const maxMoved = 32

// gather moves an arena's chunks towards others, so that slabs become empty.
func (t *table) gather(seg *segment) {
	a := &seg.arena
	var from, to [maxMoved]uint32
	moved, before := 0, uint32(0)
	for id := a.first; id != 0 && moved < maxMoved && t.chunks.unused > 0; before, id = id, t.chunks.at(id).next() {
		if t.chunks.free.first()+1 > int(id) {
			continue
		}
		other := t.chunks.take()
		*t.chunks.at(other) = *t.chunks.at(id)
		if id == a.first {
			a.first = other
		} else {
			t.chunks.at(before).setNext(other)
		}
		if id == a.last {
			a.last = other
		}
		from[moved], to[moved] = id, other
		moved++
		id = other
	}
	if moved == 0 {
		return
	}
	t.each(seg, func(b *bucket, slot int) {
		if b.place(slot) != placeArena {
			return
		}
		at := b.locator(slot)
		if i := slices.Index(from[:moved], chunkOf(at)); i >= 0 {
			b[locatorWord+slot] = locatorOf(to[i], offsetOf(at), lengthOf(at), dbOf(at))
		}
	})
	for _, id := range from[:moved] {
		t.chunks.give(id)
	}
}

// large holds records too long for an arena, each in its own buffer, which its entry keeps when it moves. A
// number is an index of bufs; 0 for no record.
type large struct {
	bufs  [][]byte
	free  []uint32
	bytes int // capacity of the buffers
	names int // of names in the buffers
}

func (a *large) totalBytes() int { return a.bytes + sliceHeaderBytes*len(a.bufs) }

func (a *large) set(id uint32, buf []byte) {
	a.bytes += cap(buf) - cap(a.bufs[id])
	a.bufs[id] = buf
}

func (a *large) take(buf []byte, nameBytes int) (id uint32) {
	a.names += nameBytes
	if n := len(a.free); n > 0 {
		id = a.free[n-1]
		a.free = a.free[:n-1]
	} else {
		if len(a.bufs) == 0 {
			a.bufs = append(a.bufs, nil)
		}
		id = uint32(len(a.bufs))
		a.bufs = append(a.bufs, nil)
	}
	a.set(id, buf)
	return id
}

func (a *large) give(id uint32, nameBytes int) {
	a.names -= nameBytes
	a.set(id, nil)
	a.free = append(a.free, id)
	if len(a.free) == len(a.bufs)-1 {
		*a = large{}
	}
}

// newBuf returns an empty buffer with the whole size class.
func newBuf(bytes int) []byte { return slices.Grow([]byte(nil), bytes) }

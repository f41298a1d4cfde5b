package shard

import (
	"encoding/binary"
	"slices"

	"cellserver/internal/limiter"
)

// arenaKeyBytes is the longest name of a funnel that stands in an arena. A longer one stands alone; so what is copied at a time is
// bounded.
const arenaKeyBytes = 4096

// An arena holds the records of a segment's long keys and of those with payloads, one behind the other, in a chain of chunks. Where a chunk ends, a long
// record goes on in the next, and a short one begins there, so that one look finds it. A record that is removed leaves garbage,
// until squeeze closes the gaps.
//
// So an arena has no more room than a chunk and no more garbage than a part of itself, however it grows; and what it gives
// back the next one takes, so that nothing is left to the collector.
type arena struct {
	first, last uint32 // chunks; 0 for none
	bytes       uint32 // of records, those included that are garbage
	garbage     uint32
}

const (
	// An arena is squeezed once one in so many of its bytes, and a chunk's, are garbage.
	garbageShare = 8
	// wholeBytes is the longest record that stands in one chunk: what that leaves empty is less than paddingShare.
	wholeBytes   = 48
	paddingShare = 20
)

func (a *arena) liveBytes() int { return int(a.bytes - a.garbage) }

// length returns how many chunks the arena has.
func (a *arena) length() int { return ceilDiv(int(a.bytes), roomBytes) }

// free returns how many bytes fit into the last chunk.
func (a *arena) free() int { return a.length()*roomBytes - int(a.bytes) }

// moreChunks returns how many chunks the arena needs for another record.
func (a *arena) moreChunks(bytes int) int {
	free := a.free()
	if bytes <= wholeBytes && free < bytes {
		free = 0
	}
	return ceilDiv(max(0, bytes-free), roomBytes)
}

// isWasteful says whether it is worth while to close the gaps.
func (a *arena) isWasteful() bool {
	return a.garbage >= roomBytes && a.garbage >= a.bytes/garbageShare || a.garbage > 0 && a.garbage == a.bytes
}

// In front of a name of more than plainBytes, in an arena or alone, stands its hash: so nobody reads all of it to find out where
// it belongs.
const (
	plainBytes = 128
	hashBytes  = 8
)

// nameOf returns the name in a long funnel's record.
func nameOf(record []byte) []byte {
	if len(record) > plainBytes {
		return record[hashBytes:]
	}
	return record
}

// A locator says where a record stands, by its first chunk and its place there, how long it is, and the key's database. That
// of a key that stands alone has the number of its buffer instead.
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

func aloneLocator(number uint32, db uint16) uint64 { return uint64(number)<<dbBits | uint64(db) }

func numberOf(locator uint64) uint32 { return uint32(locator >> dbBits) }

// record returns a record, which the next call may overwrite.
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

// recordHash returns the hash in front of a record.
func (t *table) recordHash(locator uint64) uint64 {
	return binary.LittleEndian.Uint64(t.record(locatorOf(chunkOf(locator), offsetOf(locator), hashBytes, 0)))
}

// appendItem stores an item's record in a segment's arena.
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

// extend goes on to the next chunk of an arena of which all that is in use is full, and takes one if there is none.
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

// squeeze closes the gaps in a segment's arena. Each record moves towards the beginning, or stays.
func (t *table) squeeze(seg *segment) {
	a := &seg.arena
	if a.garbage == 0 {
		return
	}
	var found [segmentBuckets * longSlots]uint64 // where each record stands, and its index
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

// trim gives back the chunks that are not in use.
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

// tidy squeezes a segment's arena if that is worth while.
func (t *table) tidy(seg *segment) {
	if seg.arena.isWasteful() {
		t.squeeze(seg)
	}
}

// pack gives back what chunks a segment's arena can do without, and has the others stand together if many are free.
func (t *table) pack(seg *segment) {
	if a := &seg.arena; ceilDiv(a.liveBytes()+a.liveBytes()/paddingShare, roomBytes) < a.length() {
		t.squeeze(seg)
	}
	if t.chunks.isSparse() {
		t.gather(seg)
	}
}

// maxMoved is how many chunks of an arena move at a time.
const maxMoved = 32

// gather moves an arena's chunks to where others stand, so that slabs become empty.
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

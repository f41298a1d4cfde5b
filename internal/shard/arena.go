package shard

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"cellserver/internal/store"
)

const (
	// arenaKeyBytes is the longest key that shares an arena. A longer one has an arena to itself, which it keeps
	// wherever its entry goes; so a shared arena stays below 2 MiB and what is copied at a time is bounded.
	arenaKeyBytes = 4096 + 2
	// arenaGrowth is the part of an arena that it grows by: a long key shall cost little more than its bytes.
	arenaGrowth = 4
)

// arenas holds a table's long keys, apart from its segments because those have no pointers. An arena's number is
// its place in bufs; 0 is none.
type arenas struct {
	bufs  [][]byte
	free  []uint32
	bytes int // that the buffers have room for
}

func (a *arenas) totalBytes() int { return a.bytes + sliceHeaderBytes*len(a.bufs) }

// set puts a buffer in an arena's place.
func (a *arenas) set(id uint32, buf []byte) {
	a.bytes += cap(buf) - cap(a.bufs[id])
	a.bufs[id] = buf
}

func (a *arenas) take(buf []byte) uint32 {
	if n := len(a.free); n > 0 {
		id := a.free[n-1]
		a.free = a.free[:n-1]
		a.set(id, buf)
		return id
	}
	if len(a.bufs) == 0 {
		a.bufs = append(a.bufs, nil)
	}
	a.bufs = append(a.bufs, nil)
	id := uint32(len(a.bufs) - 1)
	a.set(id, buf)
	return id
}

func (a *arenas) give(id uint32) {
	if id == 0 {
		return
	}
	a.set(id, nil)
	a.free = append(a.free, id)
	if len(a.free) == len(a.bufs)-1 {
		*a = arenas{}
	}
}

// reserve makes room for so many bytes more, in a new buffer if need be.
func reserve(buf []byte, bytes int) []byte {
	if cap(buf)-len(buf) >= bytes {
		return buf
	}
	return append(newBuf(len(buf)+max(bytes, len(buf)/arenaGrowth)), buf...)
}

// arenaGrowth returns how many bytes the arenas take for a long key in addition, or almost: the allocator rounds up. seg
// is nil for a segment that there is not yet.
func (t *table) arenaGrowth(seg *segment, code uint64, bytes int) int {
	switch {
	case !isLong(code):
		return 0
	case code&codeMask == codeAlone || seg == nil || seg.arena == 0:
		return bytes + sliceHeaderBytes
	}
	buf := t.arenas.bufs[seg.arena]
	if cap(buf)-len(buf) >= bytes {
		return 0
	}
	return len(buf) + max(bytes, len(buf)/arenaGrowth) - cap(buf)
}

// squeeze closes the gaps in a segment's arena, and moves it nowhere else.
func (t *table) squeeze(seg *segment) {
	var found [segmentSlots]uint64 // where each long key begins, and its slot
	n := 0
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range bucketSlots {
			if b.code(slot)&codeMask == codeInArena {
				found[n] = b.key[slot][1]&^0xffffffff | uint64(i*bucketSlots+slot)
				n++
			}
		}
	}
	if n == 0 {
		t.arenas.give(seg.arena)
		seg.arena, seg.garbage = 0, 0
		return
	}
	slices.Sort(found[:n])
	buf, end := t.arenas.bufs[seg.arena], 0
	for _, f := range found[:n] {
		b, slot := seg.entryAt(f)
		offset, length := b.key[slot][1]>>32, int(b.key[slot][1]&0xffffffff)
		copy(buf[end:], buf[offset:int(offset)+length])
		b.key[slot][1] = location(end, length)
		end += length
	}
	t.arenas.set(seg.arena, buf[:end])
	seg.garbage = 0
}

// newBuf returns an empty buffer, and takes all that the allocator gives for the size.
func newBuf(bytes int) []byte { return slices.Grow([]byte(nil), bytes) }

// location packs where in an arena a key stands.
func location(offset, length int) uint64 { return uint64(offset)<<32 | uint64(length) }

// stored returns what is stored of a key that is not inline.
func (t *table) stored(seg *segment, code uint64, at uint64) []byte {
	if code&codeMask == codeAlone {
		return t.arenas.bufs[at]
	}
	offset, length := at>>32, at&0xffffffff
	return t.arenas.bufs[seg.arena][offset : offset+length]
}

// storeLong stores a long key and returns its second word.
func (t *table) storeLong(seg *segment, code uint64, key *store.Key) uint64 {
	n := storedBytes(key)
	if code&codeMask == codeAlone {
		return uint64(t.arenas.take(appendStored(newBuf(n), key)))
	}
	buf := t.arenaFor(seg, n)
	at := location(len(buf), n)
	t.arenas.set(seg.arena, appendStored(buf, key))
	return at
}

// adopt gives a segment's long key, as storeLong stored it, to another segment. room is a guess at how many bytes
// will come that way in all.
func (t *table) adopt(to, from *segment, at uint64, room int) uint64 {
	key := t.stored(from, codeInArena, at)
	if to.arena != 0 {
		room = 0
	}
	buf := t.arenaFor(to, max(len(key), room))
	t.arenas.set(to.arena, append(buf, key...))
	return location(len(buf), len(key))
}

// arenaFor returns the segment's arena with room for so many bytes.
func (t *table) arenaFor(seg *segment, bytes int) []byte {
	if seg.arena == 0 {
		seg.arena = t.arenas.take(nil)
	}
	return reserve(t.arenas.bufs[seg.arena], bytes)
}

// liveBytes returns how many bytes of a segment's arena are keys.
func (t *table) liveBytes(seg *segment) int {
	if seg.arena == 0 {
		return 0
	}
	return len(t.arenas.bufs[seg.arena]) - int(seg.garbage)
}

// dropLong forgets a long key. What it leaves in a shared arena is for compact.
func (t *table) dropLong(seg *segment, code uint64, at uint64) {
	if code&codeMask == codeAlone {
		t.arenas.give(uint32(at))
		return
	}
	seg.garbage += uint32(at & 0xffffffff)
}

// compact makes a segment's arena anew if more than half of it is garbage.
func (t *table) compact(seg *segment) {
	liveBytes := t.liveBytes(seg)
	if int(seg.garbage) <= liveBytes {
		return
	}
	old, live := t.arenas.bufs[seg.arena], newBuf(liveBytes)
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range bucketSlots {
			if b.code(slot)&codeMask != codeInArena {
				continue
			}
			offset, length := b.key[slot][1]>>32, b.key[slot][1]&0xffffffff
			b.key[slot][1] = location(len(live), int(length))
			live = append(live, old[offset:offset+length]...)
		}
	}
	t.arenas.set(seg.arena, live)
	seg.garbage = 0
	if len(live) == 0 {
		t.arenas.give(seg.arena)
		seg.arena = 0
	}
}

// hashAt returns the hash of the entry in a slot.
func (t *table) hashAt(b *bucket, slot int) uint64 {
	code := b.code(slot)
	if isLong(code) {
		return b.key[slot][0]
	}
	key := b.inline(slot)
	n := code&codeMask - codeEmptyKey
	if code&bitOtherDB == 0 {
		return maphash.Bytes(t.seed, key[:n&31])
	}
	db, name := splitStored(key[:n], true)
	return hashKey(t.seed, db, name)
}

// inline returns what is stored of a key that is not long, zero padded.
func (b *bucket) inline(slot int) (key [inlineBytes]byte) {
	binary.LittleEndian.PutUint64(key[:], b.key[slot][0])
	binary.LittleEndian.PutUint64(key[8:], b.key[slot][1])
	return key
}

// dbAt returns the database of the entry in a slot.
func (t *table) dbAt(seg *segment, b *bucket, slot int) uint16 {
	code := b.code(slot)
	switch {
	case code&bitOtherDB == 0:
		return 0
	case !isLong(code):
		return uint16(b.key[slot][0])
	}
	db, _ := splitStored(t.stored(seg, code, b.key[slot][1]), true)
	return db
}

// storedBytesAt returns how much is stored of the key in a slot.
func (t *table) storedBytesAt(b *bucket, slot int) int {
	switch code, at := b.code(slot), b.key[slot][1]; {
	case !isLong(code):
		return int(code&codeMask - codeEmptyKey)
	case code&codeMask == codeInArena:
		return int(at & 0xffffffff)
	default:
		return len(t.arenas.bufs[at])
	}
}

// appendName appends the name of the key in a slot: no more bytes than are stored.
func (t *table) appendName(buf []byte, seg *segment, b *bucket, slot int) []byte {
	code := b.code(slot)
	if isLong(code) {
		_, name := splitStored(t.stored(seg, code, b.key[slot][1]), code&bitOtherDB != 0)
		return append(buf, name...)
	}
	key := b.inline(slot)
	_, name := splitStored(key[:code&codeMask-codeEmptyKey], code&bitOtherDB != 0)
	return append(buf, name...)
}

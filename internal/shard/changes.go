package shard

import (
	"context"
	"encoding/binary"
	"slices"

	"cellserver/internal/store"
)

// A store that is tracked marks the entries that change, and lists the segments that have one. What is gone has no entry: those
// keys stand in a list of their own, which is bounded. A mark goes with its entry wherever that goes.
const (
	// goneBytes is how much a table remembers of the keys that are gone.
	goneBytes = 64 << 10
	// leastListed is how many segments are listed before it is looked for empty ones.
	leastListed = 64
	// gatherBytes is about how much is copied under a lock at a time.
	gatherBytes = 32 << 10
	// segmentGatherBytes is about how much is copied of one segment at a time.
	segmentGatherBytes = 128 << 10
)

// marks are an entry's two, as they stand in a slot's bits: that it has changed, and that its TAT went back, which is so rare
// that what expires after it can be said to be gone.
const (
	markChanged = 1
	markLowered = 2
	markMask    = markChanged | markLowered

	inlineMarkShift = 9
	longMarkShift   = laneKindShift + laneKindBits
)

// changes is what a table notes.
type changes struct {
	segments []*segment // each of which has listed set, and maybe a mark; one that was merged into another is empty
	gone     []byte     // database: u16, length: u32, name
	lost     bool       // that some are gone; there were too many
	hurry    func()     // is called when that is near
}

// markShift returns where in a bucket's meta a slot's marks are.
func (t *table) markShift(slot int) uint {
	if t.long {
		return laneBits*uint(slot) + longMarkShift
	}
	return slotBits*uint(slot) + inlineMarkShift
}

// mark notes that an entry has changed.
func (t *table) mark(seg *segment, b *bucket, slot int, marks uint64) {
	b[0] |= marks << t.markShift(slot)
	t.list(seg)
}

// marksAt returns an entry's marks.
func (t *table) marksAt(b *bucket, slot int) uint64 { return b[0] >> t.markShift(slot) & markMask }

// isMarked says whether an entry has such a mark.
func (t *table) isMarked(b *bucket, slot int, marks uint64) bool {
	return b[0]>>t.markShift(slot)&marks != 0
}

func (t *table) list(seg *segment) {
	if seg.listed {
		return
	}
	if list := &t.changes.segments; len(*list) >= 2*max(t.made, leastListed) { // those that were merged into others stay where nobody asks
		*list = slices.DeleteFunc(*list, func(seg *segment) bool {
			seg.listed = seg.used > 0
			return !seg.listed
		})
	}
	seg.listed = true
	t.changes.segments = append(t.changes.segments, seg)
}

// changeTAT is setTAT for the entry of a hash, of which the change is noted.
func (t *table) changeTAT(hash uint64, b *bucket, slot int, tatNs int64) {
	if t.tracked {
		marks := uint64(markChanged)
		if tatNs < b.tatNs(slot) {
			marks |= markLowered
		}
		if b[0]>>t.markShift(slot)&marks != marks {
			t.mark(t.segmentOf(hash), b, slot, marks)
		}
	}
	b.setTAT(slot, tatNs)
}

// noteNew notes that an entry has been made.
func (t *table) noteNew(seg *segment, b *bucket, slot int) {
	if t.tracked {
		t.mark(seg, b, slot, markChanged)
	}
}

// noteGone notes that a key is gone.
func (t *table) noteGone(key *store.Key) {
	if t.tracked && t.mayNote(len(key.Name)) {
		t.changes.gone = append(appendGone(t.changes.gone, key.DB, len(key.Name)), key.Name...)
	}
}

// noteGoneAt is noteGone for the key in a slot.
func (t *table) noteGoneAt(b *bucket, slot int) {
	n := t.nameBytesAt(b, slot)
	if t.tracked && t.mayNote(n) {
		t.changes.gone = t.appendName(appendGone(t.changes.gone, t.dbAt(b, slot), n), b, slot)
	}
}

// noteLowered notes that a key is gone which has expired or is evicted, if its TAT is before the one that was told.
func (t *table) noteLowered(b *bucket, slot int) {
	if t.isMarked(b, slot, markLowered) {
		t.noteGoneAt(b, slot)
	}
}

const goneHeaderBytes = 2 + 4

func appendGone(buf []byte, db uint16, nameBytes int) []byte {
	le := binary.LittleEndian
	return le.AppendUint32(le.AppendUint16(buf, db), uint32(nameBytes))
}

func (t *table) mayNote(nameBytes int) bool {
	before, after := len(t.changes.gone), len(t.changes.gone)+goneHeaderBytes+nameBytes
	if after > goneBytes {
		t.changes.lost = true
	}
	if before <= goneBytes/2 && after > goneBytes/2 {
		t.changes.hurry()
	}
	return !t.changes.lost
}

// Track implements store.Tracker.
func (s *Store) Track(hurry func()) {
	s.lockAll()
	defer s.unlockAll()
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			t.tracked, t.changes.hurry = true, hurry
		}
	}
}

// Changes implements store.Tracker.
func (s *Store) Changes(nowNs int64, visit func(c store.Change)) (complete bool) {
	g := gather{store: s, nowNs: nowNs, visit: visit}
	complete = true
	for i := range s.shards {
		for more := true; more; {
			var lost bool
			more, lost = g.some(&s.shards[i])
			complete = complete && !lost
			g.tell()
		}
	}
	return complete
}

// States implements store.Tracker. It looks at one segment, or a part of it, under one lock at a time.
func (s *Store) States(ctx context.Context, nowNs int64, visit func(c store.Change)) {
	g := gather{store: s, nowNs: nowNs, visit: visit}
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			for at, more := uint64(0), true; more && ctx.Err() == nil; {
				at, more = g.statesAt(&s.shards[i], t, at)
				g.tell()
			}
		}
	}
}

// restoreWindow is how many changes are looked up together, so that their cache misses overlap.
const restoreWindow = 32

// Restore implements store.Tracker. A part is every so manyth shard.
func (s *Store) Restore(nowNs int64, part, parts int, changes []store.Change) {
	type change struct {
		*store.Change
		ref keyRef
		sh  *shard
	}
	var window [restoreWindow]change
	for len(changes) > 0 {
		n, read := 0, 0
		for ; read < len(changes) && n < len(window); read++ {
			c := change{Change: &changes[read]}
			if !c.Flushed {
				c.ref = s.ref(&c.Key)
				if int(c.ref.hash>>(s.shift&63))%parts != part {
					continue
				}
				c.sh = s.shardOf(c.ref.hash)
			}
			window[n] = c
			n++
		}
		changes = changes[read:]
		s.lockPart(part, parts)
		sum := uint64(0)
		for _, c := range window[:n] {
			if !c.Flushed {
				sum += c.sh.tableFor(&c.Key, c.State.Kind).touch(c.ref.hash)
			}
		}
		s.shards[part].touched = sum
		for _, c := range window[:n] {
			if c.Flushed {
				s.emptyPartLocked(part, parts)
				continue
			}
			it := itemOf(c.ref, &c.Key, &c.State)
			c.sh.forceLocked(nowNs, &it) // it was there before
		}
		s.unlockPart(part, parts)
	}
}

func (s *Store) lockPart(part, parts int) {
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].mu.Lock()
	}
}

func (s *Store) unlockPart(part, parts int) {
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].mu.Unlock()
	}
}

func (s *Store) emptyPartLocked(part, parts int) {
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].emptyLocked()
	}
}

// Freeze implements store.Tracker.
func (s *Store) Freeze(frozen bool) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.frozen = frozen
		sh.mu.Unlock()
	}
}

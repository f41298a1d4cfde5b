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
)

// marks are an entry's two, as they stand in a slot's bits: that it has changed, and that its TAT went back, which is so rare
// that what expires after it can be said to be gone.
const (
	markChanged = 1
	markLowered = 2
	markMask    = markChanged | markLowered

	inlineMarkShift = 9
	longMarkShift   = 5
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

// nameBytesAt returns how long the name of the key in a slot is.
func (t *table) nameBytesAt(b *bucket, slot int) int {
	n := t.recordBytesAt(b, slot)
	switch {
	case t.long && n > plainBytes:
		n -= hashBytes
	case !t.long && b.inlineCode(slot)&bitOtherDB != 0:
		n -= 2
	}
	return n
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

// States implements store.Tracker. It looks at one segment under one lock at a time.
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

// statesAt copies the states in the segment at a prefix, and returns the prefix of the one after it.
func (g *gather) statesAt(sh *shard, t *table, at uint64) (next uint64, more bool) {
	g.clear()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.count == 0 {
		return 0, false
	}
	seg, next := t.segmentAfter(at)
	t.each(seg, func(b *bucket, slot int) {
		if b.tatNs(slot) > g.nowNs {
			g.copy(t, b, slot)
		}
	})
	return next, next != 0
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
				sum += c.sh.tableOf(c.ref).touch(c.ref.hash)
			}
		}
		s.shards[part].touched = sum
		for _, c := range window[:n] {
			if c.Flushed {
				s.emptyPartLocked(part, parts)
				continue
			}
			b, slot := c.sh.find(c.ref, &c.Key)
			c.sh.forceLocked(c.ref, &c.Key, b, slot, nowNs, c.TATNs) // it was there before
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

// gather is what is copied under a shard's lock, to be told without it.
type gather struct {
	store   *Store
	nowNs   int64
	visit   func(c store.Change)
	flushed bool
	gone    []byte
	names   []byte
	states  []scanKey
	dbs     []uint16
}

// some gathers from a shard: all that is gone, and then the states of the entries in a few segments. Nothing that is gone at
// that moment has a state then, and what has a state and is gone later is told to be gone later.
func (g *gather) some(sh *shard) (more, lost bool) {
	g.clear()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n := g.store.flushes; n != g.store.told { // flushes need all locks
		g.flushed, g.store.told = true, n
	}
	for _, t := range sh.tables() {
		lost = lost || t.changes.lost
		g.gone = append(g.gone, t.changes.gone...)
		t.changes.gone, t.changes.lost = t.changes.gone[:0], false
	}
	for _, t := range sh.tables() {
		for list := &t.changes.segments; len(*list) > 0; {
			if len(g.names) >= gatherBytes {
				return true, lost
			}
			last := len(*list) - 1
			seg := (*list)[last]
			(*list)[last], *list = nil, (*list)[:last]
			g.segment(t, seg)
		}
	}
	return false, lost
}

// segment copies the states of a segment's marked entries, and removes the marks.
func (g *gather) segment(t *table, seg *segment) {
	seg.listed = false
	t.each(seg, func(b *bucket, slot int) {
		if !t.isMarked(b, slot, markMask) {
			return
		}
		live, lowered := b.tatNs(slot) > g.nowNs, t.isMarked(b, slot, markLowered)
		b[0] &^= markMask << t.markShift(slot)
		if live || lowered { // or it has expired, and so has what was told of it before
			g.copy(t, b, slot)
		}
	})
}

func (g *gather) clear() {
	g.flushed, g.gone, g.names, g.states, g.dbs = false, g.gone[:0], g.names[:0], g.states[:0], g.dbs[:0]
}

func (g *gather) copy(t *table, b *bucket, slot int) {
	g.names = t.appendName(g.names, b, slot)
	g.states = append(g.states, scanKey{end: len(g.names), tatNs: b.tatNs(slot)})
	g.dbs = append(g.dbs, t.dbAt(b, slot))
}

func (g *gather) tell() {
	if g.flushed {
		g.visit(store.Change{Flushed: true})
	}
	le := binary.LittleEndian
	for b := g.gone; len(b) > 0; {
		n := goneHeaderBytes + int(le.Uint32(b[2:]))
		g.visit(store.Change{Key: store.Key{DB: le.Uint16(b), Name: b[goneHeaderBytes:n:n]}})
		b = b[n:]
	}
	start := 0
	for i, k := range g.states {
		g.visit(store.Change{Key: store.Key{DB: g.dbs[i], Name: g.names[start:k.end:k.end]}, TATNs: k.tatNs})
		start = k.end
	}
}

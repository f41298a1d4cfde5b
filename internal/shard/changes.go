package shard

import (
	"context"
	"encoding/binary"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A tracked store marks changed entries and lists their segments. Removed keys have no entry: they are in a
// bounded list. Marks move with their entries.
const (
	// goneBytes bounds a table's list of removed keys.
	goneBytes = 64 << 10
	// leastListed is the number of listed segments that starts a search for empty ones.
	leastListed = 64
	// gatherBytes is the approximate size of a copy under a lock.
	gatherBytes = 32 << 10
	// segmentGatherBytes is the approximate size of a copy of a segment.
	segmentGatherBytes = 128 << 10
)

// marks are an entry's two bits: changed, and its TAT decreased, which is so rare that expiring entries with
// it can be reported as removed.
const (
	markChanged = 1
	markLowered = 2
	markMask    = markChanged | markLowered

	inlineMarkShift = 9
	longMarkShift   = laneKindShift + laneKindBits
)

type changes struct {
	segments []*segment // those with listed set; some are unmarked, merged ones are empty
	gone     []byte     // encoded as database: u16, length: u32, name
	lost     bool       // gone has overflowed
	hurry    func()     // called before that
}

// markShift returns the position of a slot's marks in the meta.
func (t *table) markShift(slot int) uint {
	if t.long {
		return laneBits*uint(slot) + longMarkShift
	}
	return slotBits*uint(slot) + inlineMarkShift
}

func (t *table) mark(seg *segment, b *bucket, slot int, marks uint64) {
	b[0] |= marks << t.markShift(slot)
	t.list(seg)
}

func (t *table) marksAt(b *bucket, slot int) uint64 { return b[0] >> t.markShift(slot) & markMask }

func (t *table) isMarked(b *bucket, slot int, marks uint64) bool {
	return b[0]>>t.markShift(slot)&marks != 0
}

func (t *table) list(seg *segment) {
	if seg.listed {
		return
	}
	// merged segments would stay until the next Changes
	if list := &t.changes.segments; len(*list) >= 2*max(t.made, leastListed) {
		*list = slices.DeleteFunc(*list, func(seg *segment) bool {
			seg.listed = seg.used > 0
			return !seg.listed
		})
	}
	seg.listed = true
	t.changes.segments = append(t.changes.segments, seg)
}

// changeTAT is setTAT with a mark.
func (t *table) changeTAT(hash uint64, b *bucket, slot int, tatNs int64) {
	if t.long {
		t.countEndless(b.tatNs(slot), tatNs)
	}
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

func (t *table) countEndless(wasNs, isNs int64) {
	if wasNs == limiter.NeverNs {
		t.endless--
	}
	if isNs == limiter.NeverNs {
		t.endless++
	}
}

func (t *table) noteNew(seg *segment, b *bucket, slot int) {
	if t.tracked {
		t.mark(seg, b, slot, markChanged)
	}
}

// noteGone lists a removed key.
func (t *table) noteGone(key *store.Key) {
	if t.tracked && t.mayNote(len(key.Name)) {
		t.changes.gone = append(appendGone(t.changes.gone, key.DB, len(key.Name)), key.Name...)
	}
}

func (t *table) noteGoneAt(b *bucket, slot int) {
	n := t.nameBytesAt(b, slot)
	if t.tracked && t.mayNote(n) {
		t.changes.gone = t.appendName(appendGone(t.changes.gone, t.dbAt(b, slot), n), b, slot)
	}
}

// noteLowered lists an expired or evicted key whose TAT is below the reported one.
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

func (s *Store) Track(hurry func()) {
	s.lockAll()
	defer s.unlockAll()
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			t.tracked, t.changes.hurry = true, hurry
		}
	}
}

// mostPasses bounds the passes of a round, which ends then with a transaction half in it.
const mostPasses = 64

// Changes implements store.Tracker. A cursor is one more than the number of shards that are done, pass by
// pass. A pass in which a transaction has moved a key may have missed both its names, and one in which a hold
// was settled may have some of its keys: the round goes on with another one.
func (s *Store) Changes(nowNs int64, cursor int, visit func(c store.Change)) (next int, complete bool) {
	g, shards, done := &s.changed, len(s.shards), max(0, cursor-1)
	g.store, g.nowNs, g.visit = s, nowNs, visit
	if done%shards == 0 && !g.more {
		g.moves = s.moves.Load()
	}
	var lost bool
	g.more, lost = g.some(&s.shards[done%shards])
	g.report()
	if g.more {
		return done + 1, !lost
	}
	if done++; done%shards == 0 && (g.moves == s.moves.Load() || done >= mostPasses*shards) {
		g.spent(s.book.Changed())
		return 0, !lost
	}
	return done + 1, !lost
}

// spent reports what was spent up to the shards' last visits.
func (g *gather) spent(all []store.Spent) {
	for i := range all {
		g.visit(store.Change{Spent: &all[i]})
	}
}

// States implements store.Tracker. It takes one lock at a time, for at most a segment.
func (s *Store) States(ctx context.Context, nowNs int64, visit func(c store.Change), between func()) {
	g := gather{store: s, nowNs: nowNs, visit: visit}
	g.spent(s.book.Of("").Sorted())
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			for at, more := uint64(0), true; more && ctx.Err() == nil; {
				at, more = g.statesAt(&s.shards[i], t, at)
				g.report()
				if between != nil {
					between()
				}
			}
		}
	}
}

// restoreWindow is the number of changes looked up together, so that cache misses overlap.
const restoreWindow = 32

// Restore implements store.Tracker. A part is every parts-th shard.
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
			if c.Spent != nil {
				if part == 0 {
					s.book.Restore(*c.Spent)
				}
				continue
			}
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
				s.flushPartLocked(part, parts)
				continue
			}
			it := c.sh.itemOf(c.ref, &c.Key, &c.State)
			c.sh.forceLocked(nowNs, &it) // it was stored before
		}
		s.unlockPart(part, parts)
	}
}

func (s *Store) Freeze(fromNs int64, err error) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.frozenNs, sh.frozenBy = fromNs, err
		sh.mu.Unlock()
	}
}

package shard

import (
	"cmp"
	"encoding/binary"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// gather collects copies under a shard's lock for use without it.
type gather struct {
	store   *Store
	nowNs   int64
	visit   func(c store.Change)
	flushed bool
	gone    []byte
	bytes   []byte // names, followed by payloads
	states  []gathered
	moves   uint64 // of the store at the beginning of a pass
	more    bool   // of the shard's segments are to be gathered
}

// gathered is a state with the ends of its name and payload in bytes.
type gathered struct {
	nameEnd, end int
	expiresNs    int64
	db           uint16
	kind         limiter.Kind
}

// some gathers a shard's removed keys, then the states of a few segments. A key removed by now has no state
// in them; one removed later is reported later.
func (g *gather) some(sh *shard) (more, lost bool) {
	g.clear()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for at, units := range sh.spent {
		g.store.book.Add(at, units)
	}
	clear(sh.spent)
	if n := g.store.flushes; n != g.store.reported { // flushes hold all locks
		g.flushed, g.store.reported = true, n
	}
	for _, t := range sh.tables() {
		lost = lost || t.changes.lost
		g.gone = append(g.gone, t.changes.gone...)
		t.changes.gone, t.changes.lost = t.changes.gone[:0], false
	}
	for _, t := range sh.tables() {
		for list := &t.changes.segments; len(*list) > 0; {
			if len(g.bytes) >= gatherBytes {
				return true, lost
			}
			last := len(*list) - 1
			seg := (*list)[last]
			(*list)[last], *list = nil, (*list)[:last]
			if seg.listed = false; !g.segment(t, seg) {
				t.list(seg)
			}
		}
	}
	return false, lost
}

// segment copies the states of marked entries and clears the marks. It returns false if more remain.
func (g *gather) segment(t *table, seg *segment) (all bool) {
	all = true
	t.each(seg, func(b *bucket, slot int) {
		if !t.isMarked(b, slot, markMask) {
			return
		}
		if t.long && len(g.bytes) >= segmentGatherBytes {
			all = false
			return
		}
		live, lowered := b.tatNs(slot) > g.nowNs, t.isMarked(b, slot, markLowered)
		b[0] &^= markMask << t.markShift(slot)
		if live || lowered { // else it has expired, also where it was reported
			g.copy(t, b, slot)
		}
	})
	return all
}

func (g *gather) clear() {
	g.flushed, g.gone, g.bytes, g.states = false, g.gone[:0], g.bytes[:0], g.states[:0]
}

func (g *gather) copy(t *table, b *bucket, slot int) {
	g.bytes = t.appendName(g.bytes, b, slot)
	nameEnd := len(g.bytes)
	g.bytes = append(g.bytes, t.payloadAt(b, slot)...)
	g.states = append(g.states, gathered{nameEnd, len(g.bytes), b.tatNs(slot), t.dbAt(b, slot), t.kindAt(b, slot)})
}

func (g *gather) report() {
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
	for _, e := range g.states {
		s := limiter.State{Kind: e.kind, ExpiresNs: e.expiresNs}
		if e.end > e.nameEnd {
			s.Payload = g.bytes[e.nameEnd:e.end:e.end]
		}
		g.visit(store.Change{Key: store.Key{DB: e.db, Name: g.bytes[start:e.nameEnd:e.nameEnd]}, State: s})
		start = e.end
	}
}

// statesAt copies the states of the segment at a prefix, and returns the next prefix.
func (g *gather) statesAt(sh *shard, t *table, at uint64) (next uint64, more bool) {
	g.clear()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.count == 0 {
		return 0, false
	}
	seg, next := t.segmentAfter(at)
	if t.long && (at<<seg.depth != 0 || t.stateBytes(seg) > segmentGatherBytes) {
		next = g.someStates(t, seg, at, next)
		return next, next != 0
	}
	t.each(seg, func(b *bucket, slot int) {
		if b.tatNs(slot) > g.nowNs {
			g.copy(t, b, slot)
		}
	})
	return next, next != 0
}

// someStates copies a segment's states in order of prefixes, up to a bound.
func (g *gather) someStates(t *table, seg *segment, at, end uint64) (next uint64) {
	type place struct {
		prefix uint64
		index  uint64
	}
	var found [segmentBuckets * longSlots]place
	n := 0
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range longSlots {
			if t.isEmpty(b, slot) || b.tatNs(slot) <= g.nowNs {
				continue
			}
			if prefix := t.prefix(t.hashAt(b, slot)); prefix >= at {
				found[n] = place{prefix, indexOf(i, slot)}
				n++
			}
		}
	}
	slices.SortFunc(found[:n], func(a, b place) int { return cmp.Compare(a.prefix, b.prefix) })
	for i, f := range found[:n] {
		if len(g.bytes) >= segmentGatherBytes && f.prefix != found[i-1].prefix {
			return f.prefix
		}
		b, slot := seg.entryAt(f.index)
		g.copy(t, b, slot)
	}
	return end
}

func (t *table) stateBytes(seg *segment) (n int) {
	n = seg.arena.liveBytes()
	if len(t.large.bufs) == 0 {
		return n
	}
	t.each(seg, func(b *bucket, slot int) {
		if b.place(slot) == placeLarge {
			n += len(t.large.bufs[numberOf(b.locator(slot))])
		}
	})
	return n
}

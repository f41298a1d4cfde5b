package shard

import (
	"slices"

	"cellserver/internal/store"
)

const (
	// A cursor is the leading bits of a hash, few enough for clients with doubles. No segment border is
	// finer.
	cursorBits  = 48
	cursorShift = 64 - cursorBits
	lowBits     = 1<<cursorShift - 1 // outside a cursor
	tableMask   = 3                  // of a table's number, after an index

	// leastScanSegments is the number of segments visited at least if count keys are not found. A large count
	// visits as many as have scanSlots slots for each key.
	leastScanSegments = 64
	scanSlots         = 8
	scanSegmentSlots  = segmentBuckets * inlineSlots

	// keepScanBytes is the largest retained buffer: a segment of usual keys.
	keepScanBytes = 64 << 10
)

// Scan visits some of a database's live keys in order of their hashes, and returns the next cursor, 0 at the
// end. A walk from 0 to 0 meets every key that lives throughout, and none twice, as hashes do not change. A
// cursor has no state: walks can be abandoned, repeated and started anywhere with any number.
//
// A call visits about count keys, fewer where a bounded number of segments has no more. Keys whose hashes
// share the cursor's bits are visited together. visit runs without locks and may use the store; it must not
// keep the name.
func (s *Store) Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64) {
	return s.scan(scan{store: s, nowNs: nowNs, db: db}, cursor, count, visit)
}

type scan struct {
	store  *Store
	nowNs  int64
	db     uint16
	locked bool // the caller holds all locks
	*scanBuffer
}

// scanBuffer holds the findings in a segment.
type scanBuffer struct {
	found []uint64 // leading bits of hashes, with table and index in place of the rest
	names []byte
	keys  []scanKey
}

type scanKey struct {
	end   int // of its name
	entry store.Entry
}

func (s *Store) scan(sc scan, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64) {
	if cursor >= 1<<cursorBits {
		return 0
	}
	sc.scanBuffer = s.takeScanBuffer()
	defer s.giveScanBuffer(sc.scanBuffer)
	count = max(count, 1)
	at, more := cursor<<cursorShift, true
	for segments := max(leastScanSegments, count/scanSegmentSlots*scanSlots); more && count > 0 && segments > 0; {
		var seen bool
		if at, seen, more = sc.segment(at, count); seen {
			segments--
		}
		count -= len(sc.keys)
		sc.visit(visit)
	}
	if !more {
		return 0
	}
	return at >> cursorShift
}

// segment finds keys in the segment at a hash, and returns the next hash. seen is false for an empty shard.
func (sc *scan) segment(at uint64, count int) (next uint64, seen, more bool) {
	sh := sc.store.shardOf(at)
	for {
		next, seen, needBytes := sc.underLock(sh, at, count)
		if needBytes <= cap(sc.names) {
			return next, seen, next != 0
		}
		// allocated without the lock, then retried
		sc.names = make([]byte, 0, max(needBytes, 2*cap(sc.names)))
	}
}

func (sc *scan) underLock(sh *shard, at uint64, count int) (next uint64, seen bool, needBytes int) {
	if !sc.locked {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	sc.keys, sc.names, sc.found = sc.keys[:0], sc.names[:0], sc.found[:0]
	if sh.count() == 0 {
		return nextShard(at, sh.inline.skip), false, 0
	}
	var segments [numTables]*segment
	next = nextShard(at, sh.inline.skip)
	for i, t := range sh.tables() {
		if t.count > 0 {
			segments[i], next = t.segmentUpTo(at, next)
		}
	}
	for i, t := range sh.tables() {
		if segments[i] != nil {
			sc.findIn(t, segments[i], at, next)
		}
	}
	if n := cutScan(sc.found, count); n < len(sc.found) {
		next = sc.found[n] &^ lowBits
		sc.found = sc.found[:n]
	}
	for _, f := range sc.found {
		n := f >> indexBits & tableMask
		t := sh.tables()[n]
		b, slot := segments[n].entryAt(f)
		needBytes += t.nameBytesAt(b, slot)
	}
	if needBytes <= cap(sc.names) {
		for _, f := range sc.found {
			n := f >> indexBits & tableMask
			t := sh.tables()[n]
			b, slot := segments[n].entryAt(f)
			sc.names = t.appendName(sc.names, b, slot)
			sc.keys = append(sc.keys, scanKey{end: len(sc.names), entry: store.Entry{Kind: t.kindAt(b, slot), ExpiresNs: b.tatNs(slot)}})
		}
	}
	return next, true, needBytes
}

// segmentUpTo returns the segment at a hash and the smaller of its end and next; 0 is the end of all.
func (t *table) segmentUpTo(hash, next uint64) (*segment, uint64) {
	seg, prefix := t.segmentAfter(t.prefix(hash))
	if prefix == 0 { // the end of the shard
		return seg, next
	}
	return seg, min(next-1, (hash&^(1<<(64-t.skip)-1)|prefix>>t.skip)-1) + 1
}

// nextShard returns the first hash of the next shard, or 0.
func nextShard(hash uint64, shardBits uint8) uint64 {
	width := uint64(1) << (64 - shardBits)
	return hash&^(width-1) + width
}

// findIn finds the database's live entries with hashes from at to before next; segments of different depths
// hold others, too.
func (sc *scan) findIn(t *table, seg *segment, at, next uint64) {
	table := t.number() << indexBits
	slots := t.slots()
	for i := range seg.buckets {
		b := &seg.buckets[i]
		for slot := range slots {
			if t.isEmpty(b, slot) || b.tatNs(slot) <= sc.nowNs || t.dbAt(b, slot) != sc.db {
				continue
			}
			if hash := t.hashAt(b, slot); hash >= at && hash <= next-1 {
				sc.found = append(sc.found, hash&^lowBits|table|indexOf(i, slot))
			}
		}
	}
}

// cutScan returns how many of found, by hash, to visit: count, and those with the last one's cursor. It sorts
// them unless it takes all.
func cutScan(found []uint64, count int) int {
	if len(found) <= count {
		return len(found)
	}
	slices.Sort(found)
	n := count
	for n < len(found) && found[n]&^lowBits == found[n-1]&^lowBits {
		n++
	}
	return n
}

func (sc *scan) visit(visit func(key store.Key, e store.Entry)) {
	start := 0
	for _, k := range sc.keys {
		visit(store.Key{DB: sc.db, Name: sc.names[start:k.end:k.end]}, k.entry)
		start = k.end
	}
}

func (s *Store) takeScanBuffer() *scanBuffer {
	if b, ok := s.scans.Get().(*scanBuffer); ok {
		return b
	}
	return &scanBuffer{found: make([]uint64, 0, 2*scanSegmentSlots), keys: make([]scanKey, 0, 2*scanSegmentSlots)}
}

func (s *Store) giveScanBuffer(b *scanBuffer) {
	if cap(b.names) > keepScanBytes {
		b.names = nil
	}
	s.scans.Put(b)
}

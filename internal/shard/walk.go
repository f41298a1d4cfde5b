package shard

import (
	"context"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// walkSegments is the number of a table's segments visited under one lock.
const walkSegments = 8

// part is an inclusive range of prefixes. whole says that the segment lies within it.
type part struct {
	from, last uint64
	whole      bool
}

func (p part) has(t *table, b *bucket, slot int) bool {
	if p.whole {
		return true
	}
	prefix := t.prefix(t.hashAt(b, slot))
	return prefix >= p.from && prefix <= p.last
}

// segmentVisit gets a segment and the walk's current part.
type segmentVisit func(t *table, seg *segment, at part)

// Count implements store.Walker. It looks at every entry, a few segments at a time.
func (s *Store) Count(ctx context.Context, nowNs int64, counts []store.KeyCount) {
	for i := range s.shards {
		s.shards[i].eachSegment(ctx, false, counter(nowNs, counts))
	}
}

func counter(nowNs int64, counts []store.KeyCount) segmentVisit {
	return func(t *table, seg *segment, at part) {
		t.each(seg, func(b *bucket, slot int) {
			if b.tatNs(slot) <= nowNs || !at.has(t, b, slot) {
				return
			}
			if db := int(t.dbAt(b, slot)); db < len(counts) {
				counts[db].Keys++
				if b.tatNs(slot) != limiter.NeverNs {
					counts[db].Expiring++
				}
			}
		})
	}
}

// Flush implements store.Walker, a few segments at a time.
func (s *Store) Flush(ctx context.Context, db uint16) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.eachSegment(ctx, false, sh.flusher(db))
		sh.mu.Lock()
		sh.resetIfEmptyLocked()
		sh.mu.Unlock()
	}
}

// flusher returns a visit that removes a database's entries, wherever the walk is.
func (sh *shard) flusher(db uint16) segmentVisit {
	return func(t *table, seg *segment, _ part) {
		sh.removeLocked(t, seg, func(b *bucket, slot int) bool {
			if t.dbAt(b, slot) != db {
				return false
			}
			t.noteGoneAt(b, slot)
			return true
		})
	}
}

// eachSegment visits all segments until ctx ends, under the lock unless the caller holds it. It walks the
// tables side by side by prefix: keys may move between them at any time.
func (sh *shard) eachSegment(ctx context.Context, locked bool, visit segmentVisit) {
	for at, more := uint64(0), true; more && ctx.Err() == nil; {
		at, more = sh.someSegments(at, locked, visit)
	}
}

// someSegments visits the tables from a prefix up to a few segments of the denser one.
func (sh *shard) someSegments(at uint64, locked bool, visit segmentVisit) (next uint64, more bool) {
	if !locked {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	last := ^uint64(0)
	for _, t := range sh.tables() {
		if t.count > 0 {
			last = min(last, t.reach(at))
		}
	}
	for _, t := range sh.tables() {
		if t.count > 0 {
			t.visit(at, last, visit)
		}
	}
	return last + 1, last != ^uint64(0)
}

// reach returns the last prefix within a few segments.
func (t *table) reach(at uint64) (last uint64) {
	for range walkSegments {
		if _, at = t.segmentAfter(at); at == 0 {
			break
		}
	}
	return at - 1
}

func (t *table) visit(from, last uint64, visit segmentVisit) {
	for at, more := from, true; more; {
		seg, next := t.segmentAfter(at)
		visit(t, seg, part{from, last, at<<seg.depth == 0 && next-1 <= last})
		at, more = next, next-1 < last
	}
}

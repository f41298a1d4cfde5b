package shard

import (
	"context"
	"time"
)

// Sweeper frees the memory of expired keys, one segment under one lock at a time.
type Sweeper struct {
	// Took, if set, is called by Run with each sweep's duration.
	Took func(ns int64)
	// Before, if set, is called by Run before each sweep.
	Before func()

	store *Store
	shard int
	hand  hand // the next segment
}

func NewSweeper(s *Store) *Sweeper { return &Sweeper{store: s} }

// Step sweeps the next segment, endlessly around the store, and returns the numbers of entries seen and
// removed. An empty shard takes a step.
func (w *Sweeper) Step(nowNs int64) (seen, removed int) {
	sh := &w.store.shards[w.shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	seen, removed, w.hand = sh.sweepLocked(w.hand, nowNs)
	if w.hand == (hand{}) {
		w.shard = (w.shard + 1) % len(w.store.shards)
	}
	return seen, removed
}

// sweepLocked sweeps a segment and returns the next position, the zero hand at the end.
func (sh *shard) sweepLocked(at hand, nowNs int64) (seen, removed int, next hand) {
	tables := sh.tables()
	for tables[at.table].directory == nil {
		if at.nextTable(len(tables)); at == (hand{}) {
			return 0, 0, at
		}
	}
	seen, removed, at.at = sh.sweepTableLocked(tables[at.table], at.at, nowNs)
	for at.at == 0 {
		if at.nextTable(len(tables)); at == (hand{}) || tables[at.table].directory != nil {
			break
		}
	}
	return seen, removed, at
}

func (sh *shard) sweepTableLocked(t *table, at uint64, nowNs int64) (seen, removed int, next uint64) {
	seg, next := t.segmentAfter(at)
	sh.swept++
	seen = int(seg.used)
	removed = sh.removeExpiredLocked(t, seg, nowNs)
	if t.count == 0 {
		sh.resetIfEmptyLocked()
		return seen, removed, 0
	}
	if seg.passed && seg.holed {
		t.rebuild(seg)
	}
	for t.isSecondHalf(at) && t.merge(at, t.sparse()) { // its sibling was swept before
		continue // the result may have a sparse sibling
	}
	if t.long {
		t.pack(t.segmentOf(at >> t.skip))
	}
	t.settle()
	if !t.budget.fits(0) {
		removed += sh.reduceLocked(t, at, next == 0, nowNs)
	}
	return seen, removed, next
}

// excessShare is the share of a table's only segment evicted at once.
const excessShare = 4

// reduceLocked shrinks tables beyond their bound, as after SetMaxBytes: it moves and frees chunks, and if
// that is not enough, evicts entries of the segment at a prefix.
func (sh *shard) reduceLocked(t *table, at uint64, last bool, nowNs int64) (evicted int) {
	if t.long {
		if t.gather(t.segmentOf(at >> t.skip)); last {
			t.chunks.trim()
		}
		t.settle()
	}
	if !t.budget.evicts() || t.budget.fits(-int(t.budget.unusedBytes.Load())) {
		return 0
	}
	switch seg, other := t.halves(at); {
	case other != nil:
		return sh.shrinkLocked(t, seg, other, at, nowNs)
	case seg.depth == 0: // the only segment: long keys remain
		evicted = sh.evictSoonestLocked(t, nowNs, ceilDiv(int(seg.used), excessShare), seg)
		sh.resetIfEmptyLocked()
		t.settle()
	}
	return evicted
}

const (
	sweepInterval = 50 * time.Millisecond
	// A tick sweeps a part of the store, and continues, up to sweepBudget, while more than a tenth of the
	// entries just seen had expired.
	sweepPart   = 100 // around in 5 s in quiet times
	sweepBudget = 10 * time.Millisecond
	sweepChunk  = 64 // steps between clock readings
)

// Run sweeps until ctx is done. now is the clock of the store's callers.
func (w *Sweeper) Run(ctx context.Context, now func() int64) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.tick(now)
		}
	}
}

func (w *Sweeper) tick(now func() int64) {
	if w.Before != nil {
		w.Before()
	}
	startNs := now()
	least := w.store.segments() / sweepPart
	for steps := 0; ; {
		var seen, removed int
		nowNs := now()
		expiredNs := nowNs - min(w.store.budget.graceNs(), w.store.valueBudget.graceNs())
		for range sweepChunk {
			s, r := w.Step(expiredNs)
			seen, removed, steps = seen+s, removed+r, steps+1
		}
		if steps >= least && removed*10 <= seen || nowNs-startNs >= int64(sweepBudget) {
			break
		}
	}
	if w.Took != nil {
		w.Took(now() - startNs)
	}
}

// segments returns the number of steps around the store.
func (s *Store) segments() (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += max(1, sh.inline.made+sh.packed.made+sh.long.made+sh.values.made)
		sh.mu.Unlock()
	}
	return n
}

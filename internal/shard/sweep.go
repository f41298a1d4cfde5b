package shard

import (
	"context"
	"time"
)

// Sweeper walks a store and gives back the memory of expired keys. It looks at one segment under one lock at a
// time, so nobody waits for it longer than that takes.
type Sweeper struct {
	// Took, if it is not nil, is told by Run how long each sweep took.
	Took func(ns int64)
	// Before, if it is not nil, is called by Run before each sweep.
	Before func()

	store *Store
	shard int
	hand  hand // of the next segment in that shard
}

// NewSweeper returns a Sweeper that begins at the store's first shard.
func NewSweeper(s *Store) *Sweeper { return &Sweeper{store: s} }

// Step sweeps one segment and goes on to the next, around the store without end. It returns how many entries it
// looked at and how many it removed. A shard without entries takes a step too.
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

// sweepLocked sweeps a segment, and returns where the next one is: the zero hand after the last.
func (sh *shard) sweepLocked(from hand, nowNs int64) (seen, removed int, next hand) {
	if !from.long && sh.inline.directory == nil {
		from = hand{long: true}
	}
	t := sh.tableAt(from)
	if t.directory == nil {
		return 0, 0, hand{}
	}
	seen, removed, at := sh.sweepTableLocked(t, from.at, nowNs)
	switch {
	case at != 0:
		return seen, removed, hand{from.long, at}
	case !from.long && sh.long.directory != nil:
		return seen, removed, hand{long: true}
	}
	return seen, removed, hand{}
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
	for t.isSecondHalf(at) && t.merge(at) { // the first was swept before it
		continue // what was joined may be joined again
	}
	if t.long {
		t.pack(t.segmentOf(at >> t.skip))
	}
	sh.settleLocked()
	if !sh.budget.fits(0) {
		removed += sh.reduceLocked(t, at, next == 0, nowNs)
	}
	return seen, removed, next
}

// excessShare is the part of a table's only segment that is evicted at a time.
const excessShare = 4

// reduceLocked helps where the tables are larger than they may be, as after SetMaxBytes: chunks that are free are moved
// behind those in use and given back, and if that will not do, entries of the segment at a prefix are evicted.
func (sh *shard) reduceLocked(t *table, at uint64, last bool, nowNs int64) (evicted int) {
	if t.long {
		if t.gather(t.segmentOf(at >> t.skip)); last {
			t.chunks.trim()
		}
		sh.settleLocked()
	}
	if !sh.budget.evicts() || sh.budget.fits(-int(sh.budget.unusedBytes.Load())) {
		return 0
	}
	switch seg, other := t.halves(at); {
	case other != nil:
		return sh.shrinkLocked(t, seg, other, at, nowNs)
	case seg.depth == 0: // the only one: its long keys are left
		evicted = sh.evictSoonestLocked(t, nowNs, ceilDiv(int(seg.used), excessShare), seg)
		sh.resetIfEmptyLocked()
		sh.settleLocked()
	}
	return evicted
}

const (
	sweepInterval = 50 * time.Millisecond
	// A tick sweeps a part of the store in any case, and goes on, up to sweepBudget, for as long as more than
	// one in ten of the entries it saw last had expired.
	sweepPart   = 100 // so that in quiet times it comes around in 5 s
	sweepBudget = 10 * time.Millisecond
	sweepChunk  = 64 // steps between two looks at the clock
)

// Run sweeps until ctx is done. now is the clock that the store's callers use.
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
		for range sweepChunk {
			s, r := w.Step(nowNs)
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

// segments counts the steps of one way around the store.
func (s *Store) segments() (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += max(1, sh.inline.made+sh.long.made)
		sh.mu.Unlock()
	}
	return n
}

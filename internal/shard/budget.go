package shard

import (
	"sync/atomic"
	"time"

	"cellserver/internal/store"
)

// budget bounds the bytes of the limiters' tables, or of the values'. Only allocation and release touch it,
// no other request.
type budget struct {
	maxBytes    atomic.Int64 // 0 for none
	fitBytes    atomic.Int64 // the part of them beyond which keys are evicted
	usedBytes   atomic.Int64
	unusedBytes atomic.Int64 // of these, in free chunks
	refuses     atomic.Bool  // new keys are refused, not others evicted
}

// headroomShare: values are evicted before this share of their bound is left, so that few are refused.
const headroomShare = 16

// SetMaxBytes implements store.Bounded. The Sweeper evicts until larger tables fit.
func (s *Store) SetMaxBytes(maxBytes int64, policy store.Policy) {
	s.budget.set(maxBytes, maxBytes, policy == store.NoEviction)
	s.valueBudget.refuses.Store(policy == store.NoEviction)
}

func (s *Store) SetMaxValueBytes(maxBytes int64) {
	s.valueBudget.set(maxBytes, maxBytes-maxBytes/headroomShare, s.valueBudget.refuses.Load())
}

func (b *budget) set(maxBytes, fitBytes int64, refuses bool) {
	b.refuses.Store(refuses)
	b.fitBytes.Store(fitBytes)
	b.maxBytes.Store(maxBytes)
}

func (b *budget) like(other *budget) {
	b.set(other.maxBytes.Load(), other.fitBytes.Load(), other.refuses.Load())
}

// fits reports whether the tables may take more bytes without evictions.
func (b *budget) fits(bytes int) bool {
	most := b.fitBytes.Load()
	return most == 0 || b.usedBytes.Load()+int64(bytes) <= most
}

// admits reports whether the tables may take more bytes after evictions.
func (b *budget) admits(bytes int) bool {
	most := b.maxBytes.Load()
	return most == 0 || b.usedBytes.Load()+int64(bytes) <= most
}

// mayRefuse reports whether entries may be refused. Values never exceed their bound, as some never expire.
func (t *table) mayRefuse() bool {
	return t.budget.refuses.Load() || t.values && t.budget.maxBytes.Load() != 0
}

func (b *budget) evicts() bool { return b.maxBytes.Load() != 0 && !b.refuses.Load() }

// grace is how long the Sweeper leaves an expired entry for its key's next call, which takes its slot in
// place: where the tables take half of what they may, or have no bound.
const grace = time.Second

// graceNs returns the current grace: twice as long for empty tables, and none at the bound.
func (b *budget) graceNs() int64 {
	most := b.maxBytes.Load()
	if most == 0 {
		return int64(grace)
	}
	return int64(2 * float64(grace) * max(0, 1-float64(b.usedBytes.Load())/float64(most)))
}

// settle accounts for the table's growth.
func (t *table) settle() {
	if bytes := t.bytes(); bytes != t.heldBytes {
		t.budget.usedBytes.Add(int64(bytes - t.heldBytes))
		t.heldBytes = bytes
	}
	if bytes := t.chunks.unused * chunkBytes; bytes != t.unusedBytes {
		t.budget.unusedBytes.Add(int64(bytes - t.unusedBytes))
		t.unusedBytes = bytes
	}
}

// storeLocked writes an item to its key's entry, as found. It returns false, with no effect, if a new or
// grown key is refused.
func (sh *shard) storeLocked(nowNs int64, t *table, b *bucket, slot int, it *item) bool {
	live := it.expiresNs > nowNs
	if b != nil && b.tatNs(slot) <= nowNs {
		sh.expired++
		sh.loseHoldsLocked(t, b, slot, nowNs)
	}
	switch {
	case b == nil && !live:
		return true
	case b == nil:
		return sh.insertLocked(nowNs, it)
	case !live:
		seg := t.segmentOf(it.ref.hash)
		t.noteGone(it.key)
		t.remove(seg, b, slot)
		t.tidy(seg)
	case t.change(b, slot, it):
		return true
	default:
		return sh.moveLocked(nowNs, t, b, slot, it)
	}
	t.settle()
	return true
}

// moveLocked moves an entry whose kind has changed or whose payload has grown.
func (sh *shard) moveLocked(nowNs int64, t *table, b *bucket, slot int, it *item) bool {
	to, seg, live := sh.tableOf(it), t.segmentOf(it.ref.hash), b.tatNs(slot) > nowNs
	if live && t.kindAt(b, slot) == it.kind {
		it.setSpare(len(t.payloadAt(b, slot)))
	}
	smaller := it.recordBytes() <= t.entryBytes(b, slot) || t.packed && it.isInline()
	it.forced = it.forced || live && to.budget == t.budget && smaller
	if live && !it.forced && to.mayRefuse() && !sh.mayMoveLocked(nowNs, t, to, it) {
		to.refused++
		return false
	}
	marks := t.marksAt(b, slot)
	if it.expiresNs < b.tatNs(slot) {
		marks |= markLowered
	}
	t.remove(seg, b, slot) // avoids evicting it for itself
	t.tidy(seg)
	if live && to == t {
		if t.budget.evicts() {
			sh.freeBytesLocked(t, seg, it, nowNs)
		}
		t.add(seg, it)
	} else {
		it.forced = it.forced || live
		if !sh.insertLocked(nowNs, it) {
			t.settle()
			if marks&markLowered != 0 {
				t.noteGone(it.key)
			}
			return false
		}
	}
	if to.tracked && marks&markLowered != 0 {
		if b, slot := to.find(it.ref, it.key); b != nil {
			to.mark(to.segmentOf(it.ref.hash), b, slot, marks)
		}
	}
	t.settle()
	to.settle()
	return true
}

func (sh *shard) mayMoveLocked(nowNs int64, from, to *table, it *item) bool {
	fits := func() bool {
		growth := to.growth(it)
		if from == to { // it leaves a slot there
			growth = to.longGrowth(&to.segmentOf(it.ref.hash).arena, it)
		}
		return growth == 0 || to.budget.admits(growth)
	}
	return fits() || sh.removeExpiredLocked(from, from.segmentOf(it.ref.hash), nowNs) > 0 && fits()
}

func (sh *shard) insertLocked(nowNs int64, it *item) bool {
	t := sh.tableOf(it)
	growth := t.growth(it)
	switch {
	case growth == 0 || t.budget.fits(growth):
		t.insert(it)
	case t.budget.refuses.Load():
		if !sh.expireLocked(t, it, nowNs) && !it.forced {
			t.refused++
			return false
		}
		t.insert(it)
	default:
		hasRoom := sh.makeRoomLocked(t, it, nowNs)
		switch {
		case !it.forced && t.values && !t.budget.admits(t.growth(it)):
			t.refused++
			return false
		case hasRoom:
			t.add(t.segmentOf(it.ref.hash), it)
		default:
			t.insert(it)
		}
	}
	t.settle()
	return true
}

// forceLocked is storeLocked for what must not be refused.
func (sh *shard) forceLocked(nowNs int64, it *item) {
	it.forced = true
	t, b, slot := sh.find(it.ref, it.key)
	sh.storeLocked(nowNs, t, b, slot, it)
}

// expireLocked removes expired entries near a new key, and reports whether it fits now.
func (sh *shard) expireLocked(t *table, it *item, nowNs int64) bool {
	if t.directory == nil || sh.removeExpiredLocked(t, t.segmentOf(it.ref.hash), nowNs) == 0 {
		return false
	}
	return t.budget.fits(t.growth(it))
}

func (sh *shard) removeExpiredLocked(t *table, seg *segment, nowNs int64) (removed int) {
	if !t.hasExpired(seg, nowNs) {
		return 0
	}
	removed = sh.removeLocked(t, seg, func(b *bucket, slot int) bool {
		if b.tatNs(slot) > nowNs {
			return false
		}
		t.noteLowered(b, slot)
		sh.loseHoldsLocked(t, b, slot, nowNs)
		return true
	})
	sh.expired += uint64(removed)
	return removed
}

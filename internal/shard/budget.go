package shard

import (
	"sync/atomic"

	"cellserver/internal/store"
)

// budget bounds the bytes of all tables together. It is touched where a table takes or gives back memory, and by no
// request beyond that.
type budget struct {
	maxBytes    atomic.Int64 // 0 for none
	usedBytes   atomic.Int64
	unusedBytes atomic.Int64 // of these, those of chunks that are free
	refuses     atomic.Bool  // new keys, where others are evicted without it
}

// SetMaxBytes implements store.Bounded. Where the tables are larger already, the Sweeper evicts until they fit.
func (s *Store) SetMaxBytes(maxBytes int64, policy store.Policy) {
	s.budget.refuses.Store(policy == store.NoEviction)
	s.budget.maxBytes.Store(maxBytes)
}

// fits says whether the tables may take so many bytes more.
func (b *budget) fits(bytes int) bool {
	most := b.maxBytes.Load()
	return most == 0 || b.usedBytes.Load()+int64(bytes) <= most
}

// evicts says whether keys make room for others.
func (b *budget) evicts() bool { return b.maxBytes.Load() != 0 && !b.refuses.Load() }

// settleLocked tells the budget what the table has taken or given back.
func (sh *shard) settleLocked() {
	if bytes := sh.inline.bytes() + sh.long.bytes(); bytes != sh.heldBytes {
		sh.budget.usedBytes.Add(int64(bytes - sh.heldBytes))
		sh.heldBytes = bytes
	}
	if bytes := sh.long.chunks.unused * chunkBytes; bytes != sh.unusedBytes {
		sh.budget.unusedBytes.Add(int64(bytes - sh.unusedBytes))
		sh.unusedBytes = bytes
	}
}

// setLocked is table.set within the budget. It is false, and nothing has happened, if the key is new and refused.
func (sh *shard) setLocked(k keyRef, key *store.Key, b *bucket, slot int, nowNs, tatNs int64) bool {
	if b == nil && tatNs > nowNs {
		return sh.insertLocked(k, key, nowNs, tatNs)
	}
	sh.tableOf(k).set(k, key, b, slot, nowNs, tatNs)
	sh.settleLocked()
	return true
}

func (sh *shard) insertLocked(k keyRef, key *store.Key, nowNs, tatNs int64) bool {
	t := sh.tableOf(k)
	growth := t.growth(k, key)
	switch {
	case growth == 0 || sh.budget.fits(growth):
		t.insert(k, key, kindFunnel, tatNs)
	case sh.budget.refuses.Load():
		if !sh.expireLocked(t, k, key, nowNs) {
			sh.refused++
			return false
		}
		t.insert(k, key, kindFunnel, tatNs)
	default:
		if sh.makeRoomLocked(t, k, key, nowNs) {
			t.add(t.segmentOf(k.hash), k, key, kindFunnel, tatNs)
		} else {
			t.insert(k, key, kindFunnel, tatNs)
		}
	}
	sh.settleLocked()
	return true
}

// forceLocked is setLocked for what cannot be refused any more.
func (sh *shard) forceLocked(k keyRef, key *store.Key, b *bucket, slot int, nowNs, tatNs int64) {
	if !sh.setLocked(k, key, b, slot, nowNs, tatNs) {
		sh.refused--
		sh.tableOf(k).insert(k, key, kindFunnel, tatNs)
		sh.settleLocked()
	}
}

// expireLocked removes the expired entries beside a new key, and reports whether it fits then.
func (sh *shard) expireLocked(t *table, k keyRef, key *store.Key, nowNs int64) bool {
	if t.directory == nil || sh.removeExpiredLocked(t, t.segmentOf(k.hash), nowNs) == 0 {
		return false
	}
	return sh.budget.fits(t.growth(k, key))
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
		return true
	})
	sh.expired += uint64(removed)
	return removed
}

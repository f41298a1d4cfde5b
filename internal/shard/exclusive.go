package shard

import (
	"context"

	"cellserver/internal/store"
)

// exclusive implements store.Exclusive: it holds the locks of all shards. The time is the one at which it began,
// whatever time its methods are given.
type exclusive struct {
	store *Store
	nowNs int64
	ended bool
	// written are the keys that must not be evicted any more; there are none without a bound on the store.
	written map[uint64]struct{}
}

// BeginAll implements store.Transactor.
func (s *Store) BeginAll(nowNs int64) store.Exclusive {
	s.lockAll()
	x := &exclusive{store: s, nowNs: nowNs}
	if s.budget.evicts() {
		x.written = map[uint64]struct{}{}
		for i := range s.shards {
			s.shards[i].pins = x
		}
	}
	return x
}

// holds implements pins.
func (x *exclusive) holds(hash uint64) bool {
	_, found := x.written[hash]
	return found
}

// note keeps a key from being evicted until End.
func (x *exclusive) note(hash uint64) {
	if x.written != nil {
		x.written[hash] = struct{}{}
	}
}

// End implements store.Exclusive.
func (x *exclusive) End() {
	if !x.ended {
		x.ended = true
		for i := range x.store.shards {
			x.store.shards[i].pins = nil
		}
		x.store.unlockAll()
	}
}

// Throttle implements store.Keys.
func (x *exclusive) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		k := x.store.ref(&q.Key)
		x.store.shardOf(k.hash).throttleLocked(x.nowNs, k, q)
		x.note(k.hash)
	}
	return nil
}

// TAT implements store.Keys.
func (x *exclusive) TAT(_ int64, key store.Key) (tatNs int64, ok bool, err error) {
	k := x.store.ref(&key)
	tatNs = x.store.shardOf(k.hash).tatLocked(x.nowNs, k, &key)
	return tatNs, tatNs > x.nowNs, nil
}

// Delete implements store.Keys.
func (x *exclusive) Delete(_ int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		k := x.store.ref(&keys[i])
		deleted += x.store.shardOf(k.hash).deleteLocked(x.nowNs, k, &keys[i])
	}
	return deleted, nil
}

// SetIf implements store.Keys.
func (x *exclusive) SetIf(_ int64, key store.Key, tatNs int64, when store.Condition) (foundNs int64, found bool, err error) {
	k := x.store.ref(&key)
	foundNs, found, err = x.store.shardOf(k.hash).setIfLocked(x.nowNs, k, &key, tatNs, when)
	x.note(k.hash)
	return foundNs, found, err
}

// SetTAT implements store.Restorer.
func (x *exclusive) SetTAT(key store.Key, tatNs int64) {
	k := x.store.ref(&key)
	sh := x.store.shardOf(k.hash)
	if tatNs = max(tatNs, x.nowNs); tatNs == sh.tatLocked(x.nowNs, k, &key) {
		return // nothing changes, and no watch is to notice it
	}
	b, slot := sh.find(k, &key)
	sh.forceLocked(k, &key, b, slot, x.nowNs, tatNs)
	sh.changedLocked(k.hash)
	x.note(k.hash)
}

// MemoryUsage implements store.Walker.
func (x *exclusive) MemoryUsage(_ int64, key store.Key) (bytes int, ok bool) {
	k := x.store.ref(&key)
	return x.store.shardOf(k.hash).memoryUsageLocked(x.nowNs, k, &key)
}

// Count implements store.Walker.
func (x *exclusive) Count(_ context.Context, _ int64, counts []int) {
	for i := range x.store.shards {
		sh := &x.store.shards[i]
		sh.eachSegmentLocked(sh.counter(x.nowNs, counts))
	}
}

// Scan implements store.Walker; visit may use the exclusive.
func (x *exclusive) Scan(_ int64, db uint16, cursor uint64, count int, visit func(key store.Key, tatNs int64)) (next uint64) {
	return x.store.scan(scan{store: x.store, nowNs: x.nowNs, db: db, locked: true}, cursor, count, visit)
}

// Flush implements store.Walker.
func (x *exclusive) Flush(_ context.Context, db uint16) {
	for i := range x.store.shards {
		sh := &x.store.shards[i]
		sh.eachSegmentLocked(sh.flusher(db))
		sh.resetIfEmptyLocked()
	}
}

// FlushAll implements store.Walker.
func (x *exclusive) FlushAll() { x.store.flushAllLocked() }

// UpdateStats implements store.Walker.
func (x *exclusive) UpdateStats(st *store.Stats) {
	for i := range x.store.shards {
		x.store.shards[i].updateStatsLocked(st)
	}
	st.MaxBytes += int(x.store.budget.maxBytes.Load())
}

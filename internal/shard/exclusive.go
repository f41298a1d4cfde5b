package shard

import (
	"bytes"
	"context"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// exclusive implements store.Exclusive by holding all locks. Its time is that of its beginning.
type exclusive struct {
	store *Store
	nowNs int64
	ended bool
	// written are keys that must not be evicted; nil without a bound.
	written map[uint64]struct{}
	journal *journal // since the last Save; nil before the first
	copies  copies   // of payloads in all journals
}

// journal holds the keys touched between two Saves by hash.
type journal struct {
	keys   map[uint64][]saved
	before *journal // of the previous Save
}

func (s *Store) BeginAll(nowNs int64) store.Exclusive {
	s.lockAll()
	x := &exclusive{store: s, nowNs: nowNs}
	if s.budget.evicts() || s.valueBudget.evicts() {
		x.written = map[uint64]struct{}{}
		for i := range s.shards {
			s.shards[i].pins = x
		}
	}
	return x
}

func (x *exclusive) holds(hash uint64) bool {
	_, found := x.written[hash]
	return found
}

// note protects a key from eviction until End.
func (x *exclusive) note(hash uint64) {
	if x.written != nil {
		x.written[hash] = struct{}{}
	}
}

func (x *exclusive) End() {
	if !x.ended {
		x.ended = true
		x.store.moves.Add(1) // perhaps
		for i := range x.store.shards {
			x.store.shards[i].pins = nil
		}
		x.store.unlockAll()
	}
}

func (x *exclusive) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		k, sh, err := x.touch(&q.Key)
		if err != nil {
			q.End(err)
			continue
		}
		sh.throttleLocked(x.nowNs, k, q)
		x.note(k.hash)
	}
	return nil
}

func (x *exclusive) Apply(_ int64, key store.Key, step store.Step) error {
	k, sh, err := x.touch(&key)
	if err != nil {
		return err
	}
	defer x.note(k.hash)
	return sh.applyLocked(x.nowNs, k, &key, step)
}

func (x *exclusive) Entry(_ int64, key store.Key) (e store.Entry, ok bool, err error) {
	k := x.store.ref(&key)
	e, ok = x.store.shardOf(k.hash).entryLocked(x.nowNs, k, &key)
	return e, ok, nil
}

func (x *exclusive) State(_ int64, key store.Key) (s limiter.State, ok bool, err error) {
	k := x.store.ref(&key)
	s, ok = x.store.shardOf(k.hash).stateLocked(x.nowNs, k, &key)
	return s, ok, nil
}

func (x *exclusive) Delete(_ int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		k, sh, err := x.touch(&keys[i])
		if err != nil {
			return deleted, err
		}
		n, err := sh.deleteLocked(x.nowNs, k, &keys[i])
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

type saved struct {
	key   store.Key
	state limiter.State
}

// touch returns a key's shard and records its state for undo.
func (x *exclusive) touch(key *store.Key) (k keyRef, sh *shard, err error) {
	k = x.store.ref(key)
	sh = x.store.shardOf(k.hash)
	if x.journal == nil {
		return k, sh, nil
	}
	touched := x.journal.keys
	for i := range touched[k.hash] {
		if other := &touched[k.hash][i].key; other.DB == key.DB && bytes.Equal(other.Name, key.Name) {
			return k, sh, nil
		}
	}
	if t, b, slot := sh.find(k, key); b != nil && !x.copies.may(len(t.payloadAt(b, slot))) {
		return k, sh, store.ErrTooLarge
	}
	s, _ := sh.stateLocked(x.nowNs, k, key)
	touched[k.hash] = append(touched[k.hash], saved{store.Key{DB: key.DB, Name: bytes.Clone(key.Name)}, s})
	return k, sh, nil
}

// Save implements store.Restorer. Flushed keys are not restored.
func (x *exclusive) Save() (undo func()) {
	since := &journal{map[uint64][]saved{}, x.journal}
	x.journal = since
	return func() {
		for last := x.journal; last != since.before; last = last.before {
			for _, all := range last.keys {
				for i := range all {
					x.restore(&all[i])
				}
			}
		}
		x.journal = since.before
	}
}

func (x *exclusive) restore(was *saved) {
	k := x.store.ref(&was.key)
	sh := x.store.shardOf(k.hash)
	s, _ := sh.stateLocked(x.nowNs, k, &was.key)
	if s.Kind == was.state.Kind && s.ExpiresNs == was.state.ExpiresNs && bytes.Equal(s.Payload, was.state.Payload) {
		return
	}
	it := sh.itemOf(k, &was.key, &was.state)
	sh.forceLocked(x.nowNs, &it)
	sh.changedLocked(k.hash)
}

func (x *exclusive) MemoryUsage(_ int64, key store.Key) (bytes int, ok bool) {
	k := x.store.ref(&key)
	return x.store.shardOf(k.hash).memoryUsageLocked(x.nowNs, k, &key)
}

func (x *exclusive) Count(_ context.Context, _ int64, counts []store.KeyCount) {
	for i := range x.store.shards {
		x.store.shards[i].eachSegment(context.Background(), true, counter(x.nowNs, counts))
	}
}

// Scan implements store.Walker; visit may use the exclusive.
func (x *exclusive) Scan(_ int64, db uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64) {
	return x.store.scan(scan{store: x.store, nowNs: x.nowNs, db: db, locked: true}, cursor, count, visit)
}

func (x *exclusive) Flush(_ context.Context, db uint16) {
	for i := range x.store.shards {
		sh := &x.store.shards[i]
		sh.eachSegment(context.Background(), true, sh.flusher(db))
		sh.resetIfEmptyLocked()
	}
}

func (x *exclusive) FlushAll() { x.store.flushPartLocked(0, 1) }

func (x *exclusive) UpdateStats(st *store.Stats) {
	for i := range x.store.shards {
		x.store.shards[i].updateStatsLocked(st)
	}
	x.store.commonStats(st)
}

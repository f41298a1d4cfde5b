package shard

import "cellserver/internal/funnel"

// A command can be executed on the store as it is (At), as a part of a transaction on keys that were named before
// (ByKey), and on a store that is kept to one caller (Exclusive). The three have the same methods for one key; At
// and Exclusive have the same methods for many.

// At is a store at one time. Each call is a step of its own, and takes the locks that it needs.
type At struct {
	Store *Store
	NowNs int64
}

// At returns the store at a time.
func (s *Store) At(nowNs int64) At { return At{s, nowNs} }

// TAT is Store.TAT.
func (a At) TAT(key Key) (tatNs int64, ok bool) { return a.Store.TAT(a.NowNs, key) }

// Delete is Store.Delete.
func (a At) Delete(key Key) bool { return a.Store.Delete(a.NowNs, key) }

// Throttle asks a key's funnel for quantity units.
func (a At) Throttle(key Key, limit funnel.Limit, quantity int64) funnel.Result {
	batch := [1]Request{{Key: key, Limit: limit, Quantity: quantity}}
	a.Store.Throttle(a.NowNs, batch[:])
	return batch[0].Result
}

// MemoryUsage is Store.MemoryUsage.
func (a At) MemoryUsage(key Key) (bytes int, ok bool) { return a.Store.MemoryUsage(a.NowNs, key) }

// Count is Store.Count.
func (a At) Count(counts []int) { a.Store.Count(a.NowNs, counts) }

// Scan is Store.Scan.
func (a At) Scan(db uint16, cursor uint64, count int, visit func(key Key, tatNs int64)) (next uint64) {
	return a.Store.Scan(a.NowNs, db, cursor, count, visit)
}

// Flush is Store.Flush.
func (a At) Flush(db uint16) { a.Store.Flush(db) }

// FlushAll is Store.FlushAll.
func (a At) FlushAll() { a.Store.FlushAll() }

// UpdateStats is Store.UpdateStats.
func (a At) UpdateStats(st *Stats) { a.Store.UpdateStats(st) }

// ByKey is a Tx whose keys are named by what they are instead of by their place. Each must have been given to
// Begin, which Find tells; another one panics.
type ByKey Tx

// ByKey returns the Tx in its other form.
func (tx *Tx) ByKey() *ByKey { return (*ByKey)(tx) }

func (b *ByKey) state(key *Key) *txState {
	st := (*Tx)(b).find(key)
	if st == nil {
		panic("shard: a key was not given to the transaction's Begin; ask Find before")
	}
	return st
}

// TAT is Tx.TAT.
func (b *ByKey) TAT(key Key) (tatNs int64, ok bool) { return (*Tx)(b).tat(b.state(&key)) }

// Delete is Tx.Delete.
func (b *ByKey) Delete(key Key) bool { return (*Tx)(b).delete(b.state(&key)) }

// Throttle is Tx.Throttle.
func (b *ByKey) Throttle(key Key, limit funnel.Limit, quantity int64) funnel.Result {
	return (*Tx)(b).throttle(b.state(&key), limit, quantity)
}

// SetTAT makes a TAT a key's state, which is none if it is not after the Tx's time. With the state that was found,
// nothing has been written.
func (b *ByKey) SetTAT(key Key, tatNs int64) {
	st := b.state(&key)
	st.tatNs = max(tatNs, b.nowNs)
	st.written = st.tatNs != st.foundNs
}

// Exclusive is a store that nobody else can use until End, at one time. What it writes is written at once; there
// is no way back. It belongs to one goroutine, which must not use the store but through it.
type Exclusive struct {
	store *Store
	nowNs int64
	ended bool
}

// BeginAll waits for everybody else and keeps them out.
func (s *Store) BeginAll(nowNs int64) *Exclusive {
	s.lockAll()
	return &Exclusive{store: s, nowNs: nowNs}
}

// End lets the others in again. What has ended may be ended again.
func (x *Exclusive) End() {
	if !x.ended {
		x.ended = true
		x.store.unlockAll()
	}
}

// TAT is Store.TAT.
func (x *Exclusive) TAT(key Key) (tatNs int64, ok bool) {
	k := x.store.ref(&key)
	tatNs = x.store.shardOf(k.hash).tatLocked(x.nowNs, k, &key)
	return tatNs, tatNs > x.nowNs
}

// Delete is Store.Delete.
func (x *Exclusive) Delete(key Key) bool {
	k := x.store.ref(&key)
	return x.store.shardOf(k.hash).deleteLocked(x.nowNs, k, &key)
}

// Throttle is At.Throttle.
func (x *Exclusive) Throttle(key Key, limit funnel.Limit, quantity int64) funnel.Result {
	q := Request{Key: key, Limit: limit, Quantity: quantity}
	k := x.store.ref(&key)
	x.store.shardOf(k.hash).throttleLocked(x.nowNs, k, &q)
	return q.Result
}

// SetTAT makes a TAT a key's state, which is none if it is not after the time.
func (x *Exclusive) SetTAT(key Key, tatNs int64) {
	k := x.store.ref(&key)
	sh := x.store.shardOf(k.hash)
	b, slot := sh.table.find(k, &key)
	sh.table.set(k, &key, b, slot, x.nowNs, tatNs)
	sh.changedLocked(k.hash)
}

// MemoryUsage is Store.MemoryUsage.
func (x *Exclusive) MemoryUsage(key Key) (bytes int, ok bool) {
	k := x.store.ref(&key)
	return x.store.shardOf(k.hash).memoryUsageLocked(x.nowNs, k, &key)
}

// Count is Store.Count.
func (x *Exclusive) Count(counts []int) {
	for i := range x.store.shards {
		sh := &x.store.shards[i]
		sh.eachSegmentLocked(sh.counter(x.nowNs, counts))
	}
}

// Scan is Store.Scan; visit may use the Exclusive.
func (x *Exclusive) Scan(db uint16, cursor uint64, count int, visit func(key Key, tatNs int64)) (next uint64) {
	return x.store.scan(scan{store: x.store, nowNs: x.nowNs, db: db, locked: true}, cursor, count, visit)
}

// Flush is Store.Flush.
func (x *Exclusive) Flush(db uint16) {
	for i := range x.store.shards {
		sh := &x.store.shards[i]
		sh.eachSegmentLocked(sh.flusher(db))
		sh.resetIfEmptyLocked()
	}
}

// FlushAll is Store.FlushAll.
func (x *Exclusive) FlushAll() { x.store.flushAllLocked() }

// UpdateStats is Store.UpdateStats.
func (x *Exclusive) UpdateStats(st *Stats) {
	for i := range x.store.shards {
		x.store.shards[i].updateStatsLocked(st)
	}
}

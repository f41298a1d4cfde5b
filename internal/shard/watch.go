package shard

import (
	"math"
	"sync/atomic"

	"cellserver/internal/store"
)

// watch implements store.Watch by hashes. A collision, which cannot be aimed at, dirties the other watch; its
// caller tries again.
type watch struct {
	store     *Store
	dirty     atomic.Bool // set under the changed shard's lock
	expiresNs int64       // earliest expiry of the initially live keys
	keys      map[uint64]*watching
}

// watching is a key of a watch, in its shard's list for the hash.
type watching struct {
	watch      *watch
	live       bool // at the start, valid until a write
	listed     bool
	prev, next *watching
}

// watched lists a shard's watches by hash; nil if there are none.
type watched map[uint64]*watching

func (s *Store) Watch(nowNs int64, keys []store.Key) store.Watch {
	w := &watch{store: s, expiresNs: math.MaxInt64}
	w.Add(nowNs, keys)
	return w
}

func (w *watch) Add(nowNs int64, keys []store.Key) {
	if w.keys == nil {
		w.keys = make(map[uint64]*watching, len(keys))
	}
	for i := range keys {
		if w.dirty.Load() {
			return // nothing more to notice
		}
		k := w.store.ref(&keys[i])
		if w.keys[k.hash] == nil {
			x := &watching{watch: w}
			w.keys[k.hash] = x
			if expiresNs := w.store.shardOf(k.hash).beginWatch(nowNs, k, &keys[i], x); x.live {
				w.expiresNs = min(w.expiresNs, expiresNs)
			}
		}
	}
}

func (sh *shard) beginWatch(nowNs int64, k keyRef, key *store.Key, x *watching) (expiresNs int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, live := sh.entryLocked(nowNs, k, key)
	x.live = live
	if sh.watched == nil {
		sh.watched = watched{}
	}
	sh.watched.list(k.hash, x)
	return e.ExpiresNs
}

// Dirty implements store.Watch, also for keys outside the current transaction: changes are noticed before
// their shard's lock is released, so an unseen one is later for every observer.
func (w *watch) Dirty(nowNs int64) bool { return w.dirty.Load() || w.expiresNs <= nowNs }

// Close implements store.Watch. The caller must hold no locks.
func (w *watch) Close() {
	for hash, x := range w.keys {
		w.store.shardOf(hash).endWatch(hash, x)
	}
	w.keys = nil
}

func (sh *shard) endWatch(hash uint64, x *watching) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if x.listed {
		sh.watched.unlist(hash, x)
		sh.dropWatchedLocked()
	}
}

// changedLocked dirties the watches of a written key. It is separate so that the compiler inlines the test
// into writers.
func (sh *shard) changedLocked(hash uint64) {
	if sh.watched != nil {
		sh.dirtyLocked(hash)
	}
}

// dirtyLocked dirties and forgets all watches of a key.
func (sh *shard) dirtyLocked(hash uint64) {
	for x := sh.watched[hash]; x != nil; {
		next := x.next
		x.watch.dirty.Store(true)
		x.listed, x.prev, x.next = false, nil, nil
		x = next
	}
	delete(sh.watched, hash)
	sh.dropWatchedLocked()
}

// dropWatchedLocked frees an empty map, so that writers skip it.
func (sh *shard) dropWatchedLocked() {
	if len(sh.watched) == 0 {
		sh.watched = nil
	}
}

func (m watched) list(hash uint64, x *watching) {
	x.listed, x.next = true, m[hash]
	if x.next != nil {
		x.next.prev = x
	}
	m[hash] = x
}

func (m watched) unlist(hash uint64, x *watching) {
	if x.next != nil {
		x.next.prev = x.prev
	}
	switch {
	case x.prev != nil:
		x.prev.next = x.next
	case x.next != nil:
		m[hash] = x.next
	default:
		delete(m, hash)
	}
	x.listed, x.prev, x.next = false, nil, nil
}

// lost dirties the watches of an entry removed by a flush or the sweep, unless it had expired before.
func (m watched) lost(hash uint64) {
	for x := m[hash]; x != nil; x = x.next {
		if x.live {
			x.watch.dirty.Store(true)
		}
	}
}

func (m watched) lostAll() {
	for hash := range m {
		m.lost(hash)
	}
}

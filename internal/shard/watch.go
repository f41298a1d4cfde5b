package shard

import (
	"math"
	"sync/atomic"

	"cellserver/internal/store"
)

// watch implements store.Watch. It knows a key by its hash alone. Two keys of one hash, which nobody can aim at, would
// dirty each other's watches; the caller would try again.
type watch struct {
	store     *Store
	dirty     atomic.Bool // set under the lock of the shard that the change is in
	expiresNs int64       // when the first of the keys that were live does
	keys      map[uint64]*watching
}

// watching is one key of one watch. It stands in the list that its shard has for the key's hash.
type watching struct {
	watch      *watch
	live       bool // when its watch began; so it stays as long as nothing is written
	listed     bool
	prev, next *watching
}

// watched is a shard's watched keys by their hashes: each a list of who watches it. It is nil without any.
type watched map[uint64]*watching

// Watch implements store.Watcher.
func (s *Store) Watch(nowNs int64, keys []store.Key) store.Watch {
	w := &watch{store: s, expiresNs: math.MaxInt64}
	w.Add(nowNs, keys)
	return w
}

// Add implements store.Watch.
func (w *watch) Add(nowNs int64, keys []store.Key) {
	if w.keys == nil {
		w.keys = make(map[uint64]*watching, len(keys))
	}
	for i := range keys {
		if w.dirty.Load() {
			return // for good: there is nothing more to notice
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

// Dirty implements store.Watch. The watched keys need not be among those of the transaction that it is called in: a
// change is noticed before the lock of its shard is given up, so one that Dirty does not see yet comes after the
// transaction for everybody who sees both.
func (w *watch) Dirty(nowNs int64) bool { return w.dirty.Load() || w.expiresNs <= nowNs }

// Close implements store.Watch. It takes locks, so the caller must hold none.
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

// changedLocked dirties the watches of a key that was written. It is apart from what it calls so that the compiler
// puts the test for watches where the writers are.
func (sh *shard) changedLocked(hash uint64) {
	if sh.watched != nil {
		sh.dirtyLocked(hash)
	}
}

// dirtyLocked dirties all watches of a key, and forgets them: they have nothing more to notice.
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

// dropWatchedLocked gives an empty map back, so that writers pass it by and it does not stay at its largest.
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

// lost dirties the watches of an entry that a flush or the sweep removes. One that had expired before its watch
// began was no key, and no change is seen.
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

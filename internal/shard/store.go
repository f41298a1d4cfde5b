// Package shard is the lock-sharded store of limiter states. A key's hash selects a shard, under whose lock
// it is read, decided and written in one pass.
//
// The store has no clock: every call takes the time in Unix nanoseconds. A Store is safe for concurrent use;
// a transaction, a watch or a Sweeper belongs to one goroutine.
package shard

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Store implements store.Store, Walker, Watcher, Transactor and Bounded. A Sweeper frees the memory of
// expired keys.
type Store struct {
	seed     maphash.Seed // secret, against keys chosen for one shard or segment
	shift    uint8        // leaves the shard's bits of a hash
	shards   []shard
	budget   budget        // of limiters
	flushes  int           // guarded by all locks; any one suffices to read
	reported int           // flushes, by Changes
	moves    atomic.Uint64 // transactions of which a round must have all keys or none
	changed  gather        // of Changes, whose calls do not overlap
	holds    store.HoldCounts
	book     store.Book
	scans    sync.Pool // of *scanBuffer
	txs      sync.Pool // of *tx

	valueBudget budget
}

// Many shards separate callers on many cores; few shards have more requests of a batch each, whose cache
// misses overlap.
const (
	shardsPerCore = 8
	minShards     = 16
	maxShards     = 256
)

// New returns an empty store with shards for GOMAXPROCS.
func New() *Store {
	n := min(max(shardsPerCore*runtime.GOMAXPROCS(0), minShards), maxShards)
	return newStore(bits.Len(uint(n - 1)))
}

func newStore(shardBits int) *Store { return newStoreOf(maphash.MakeSeed(), shardBits) }

func newStoreOf(seed maphash.Seed, shardBits int) *Store {
	s := &Store{seed: seed, shift: uint8(64 - shardBits), shards: make([]shard, 1<<shardBits)}
	s.txs.New = func() any { return &tx{store: s, buffer: make([]byte, 0, txBufferBytes)} }
	for i := range s.shards {
		sh := &s.shards[i]
		sh.inline = table{seed: s.seed, skip: uint8(shardBits), budget: &s.budget}
		sh.packed = sh.inline
		sh.packed.packed = true
		sh.long = table{seed: s.seed, skip: uint8(shardBits), long: true, budget: &s.budget}
		sh.values = table{seed: s.seed, skip: uint8(shardBits), long: true, values: true, budget: &s.valueBudget}
		sh.frozenNs = store.Never
		sh.holds, sh.book = &s.holds, &s.book
	}
	return s
}

type shard struct {
	mu       sync.Mutex // rank 50, in order: guards all below
	frozenNs int64      // time from which requests change nothing
	inline   table      // of funnels with short names, and named limits' single ones
	packed   table      // of other shapes with short names
	long     table      // of all other limiters
	values   table
	expired  uint64
	swept    uint64
	touched  uint64 // see table.touch
	watched  watched
	counts   counts
	frozenBy error

	pins      pins          // of a transaction on several keys that holds the lock, or nil
	hand      hand          // of reclaimLocked for limiters
	valueHand hand          // of reclaimLocked for values
	scratch   []byte        // a payload under change
	state     limiter.State // of the current step
	notes     limiter.Notes // of it
	holds     *store.HoldCounts
	spent     store.Spends // since the last round; see Changes
	book      *store.Book

	_ [128]byte // separates shards by a pair of cache lines, which are often fetched together
}

func (s *Store) Apply(nowNs int64, key store.Key, step store.Step) error {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.applyLocked(nowNs, k, &key, step)
}

func (s *Store) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, ok = sh.entryLocked(nowNs, k, &key)
	return e, ok, nil
}

func (s *Store) State(nowNs int64, key store.Key) (state limiter.State, ok bool, err error) {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	state, ok = sh.stateLocked(nowNs, k, &key)
	return state, ok, nil
}

func (s *Store) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	if len(keys) == 1 {
		k := s.ref(&keys[0])
		sh := s.shardOf(k.hash)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return sh.deleteLocked(nowNs, k, &keys[0])
	}
	tx := s.begin(nowNs, keys)
	defer tx.Rollback()
	deleted, err = tx.Delete(nowNs, keys)
	tx.Commit()
	return deleted, err
}

func (s *Store) FlushAll() {
	s.lockAll()
	defer s.unlockAll()
	s.flushPartLocked(0, 1)
}

func (s *Store) lockAll() { s.lockPart(0, 1) }

func (s *Store) unlockAll() { s.unlockPart(0, 1) }

// lockPart locks every parts-th shard in index order, as required for several locks.
func (s *Store) lockPart(part, parts int) {
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].mu.Lock()
	}
}

func (s *Store) unlockPart(part, parts int) {
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].mu.Unlock()
	}
}

// flushPartLocked empties a part. All of the store is reported to trackers.
func (s *Store) flushPartLocked(part, parts int) {
	if parts == 1 {
		s.flushes++
	}
	for i := part; i < len(s.shards); i += parts {
		s.shards[i].emptyLocked()
	}
}

// emptyLocked removes all keys; the caller reports it.
func (sh *shard) emptyLocked() {
	sh.watched.lostAll()
	for _, t := range sh.tables() {
		t.changes.gone, t.changes.lost = nil, false
		t.reset()
		t.settle()
	}
}

func (s *Store) ref(key *store.Key) keyRef { return refOf(key, hashKey(s.seed, key.DB, key.Name)) }

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>(s.shift&63)] }

// tables returns the tables in the order of walks.
func (sh *shard) tables() [numTables]*table {
	return [...]*table{&sh.inline, &sh.packed, &sh.long, &sh.values}
}

const (
	numTables = 4
	numShort  = 2 // the first ones: of short states
)

func (sh *shard) tableOf(it *item) *table {
	switch {
	case it.isInline():
		return &sh.inline
	case it.isPacked():
		return &sh.packed
	case it.kind == limiter.Value:
		return &sh.values
	}
	return &sh.long
}

// tableOfRequest returns the most likely table of a request's key.
func (sh *shard) tableOfRequest(q *store.Request) *table {
	if q.Rule.Kind != limiter.Named {
		return sh.tableFor(&q.Key, q.Rule.Kind)
	}
	if words, ok := q.Rule.Words(); ok {
		return sh.tableOfWords(&q.Key, words)
	}
	return &sh.long
}

// tableFor returns the most likely table of a key for requests of a kind.
func (sh *shard) tableFor(key *store.Key, kind limiter.Kind) *table {
	switch {
	case kind == limiter.Funnel && isInline(key):
		return &sh.inline
	case kind == limiter.Value:
		return &sh.values
	}
	if words, ok := kind.Words(); ok {
		return sh.tableOfWords(key, words)
	}
	return &sh.long
}

// tableOfWords returns the table of a key for a shape of so many words, the long one if it does not fit.
func (sh *shard) tableOfWords(key *store.Key, words int) *table {
	switch {
	case words == 0 && isInline(key):
		return &sh.inline
	case fitsPacked(key.DB, len(key.Name), words):
		return &sh.packed
	}
	return &sh.long
}

// find returns a key's table, bucket and slot; the bucket is nil if it is absent.
func (sh *shard) find(k keyRef, key *store.Key) (t *table, b *bucket, slot int) {
	if !k.isLong() {
		if b, slot = sh.inline.findInline(k); b != nil || sh.packed.shorts+sh.long.shorts+sh.values.count == 0 {
			return &sh.inline, b, slot
		}
	}
	if k.isLong() || sh.long.shorts > 0 { // long plain funnels are found first
		if b, slot = sh.long.findLong(k, key); b != nil || sh.packed.count+sh.values.count == 0 {
			return &sh.long, b, slot
		}
	}
	if b, slot = sh.packed.findPacked(k, key); b != nil || sh.values.count == 0 {
		return &sh.packed, b, slot
	}
	b, slot = sh.values.findLong(k, key)
	return &sh.values, b, slot
}

// findOf is find for a key most likely of a kind.
func (sh *shard) findOf(kind limiter.Kind, k keyRef, key *store.Key) (t *table, b *bucket, slot int) {
	if t = sh.tableFor(key, kind); kind != limiter.Funnel && kind != limiter.Named {
		if b, slot = t.find(k, key); b != nil {
			return t, b, slot
		}
	}
	return sh.find(k, key)
}

func (sh *shard) count() int {
	return sh.inline.count + sh.packed.count + sh.long.count + sh.values.count
}

// entryLocked returns a key's Entry; one that is absent expires at nowNs.
func (sh *shard) entryLocked(nowNs int64, k keyRef, key *store.Key) (e store.Entry, live bool) {
	t, b, slot := sh.find(k, key)
	if b == nil || b.tatNs(slot) <= nowNs {
		return store.Entry{ExpiresNs: nowNs}, false
	}
	return store.Entry{Kind: t.kindAt(b, slot), ExpiresNs: b.tatNs(slot)}, true
}

// stateLocked returns a key's state with a copy of its payload; one that is absent expires at nowNs.
func (sh *shard) stateLocked(nowNs int64, k keyRef, key *store.Key) (s limiter.State, live bool) {
	t, b, slot := sh.find(k, key)
	if b == nil || b.tatNs(slot) <= nowNs {
		return limiter.State{ExpiresNs: nowNs}, false
	}
	return limiter.State{Kind: t.kindAt(b, slot), ExpiresNs: b.tatNs(slot), Payload: bytes.Clone(t.payloadAt(b, slot))}, true
}

// deleteLocked removes a key and returns the number of live ones, 0 or 1.
func (sh *shard) deleteLocked(nowNs int64, k keyRef, key *store.Key) (deleted int, err error) {
	t, b, slot := sh.find(k, key)
	if b == nil || b.tatNs(slot) <= nowNs {
		return 0, nil
	}
	if nowNs >= sh.frozenNs {
		return 0, sh.frozenBy
	}
	sh.storeLocked(nowNs, t, b, slot, &item{ref: k, key: key, expiresNs: nowNs})
	sh.changedLocked(k.hash)
	return 1, nil
}

// removeLocked is table.removeWhere for entries that no caller names.
func (sh *shard) removeLocked(t *table, seg *segment, cond func(b *bucket, slot int) bool) (removed int) {
	defer t.settle()
	if sh.watched == nil {
		return t.removeWhere(seg, cond)
	}
	return t.removeWhere(seg, func(b *bucket, slot int) bool {
		if !cond(b, slot) {
			return false
		}
		sh.watched.lost(t.hashAt(b, slot))
		return true
	})
}

func (sh *shard) resetIfEmptyLocked() {
	for _, t := range sh.tables() {
		if t.count == 0 && t.directory != nil {
			t.reset()
		}
		t.settle()
	}
}

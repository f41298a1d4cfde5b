// Package shard is the lock-sharded store of limiter states. A key's hash picks one of its shards, and what is
// read, decided and written for the key happens under that shard's lock in one pass.
//
// The store has no clock: every call takes the time, as Unix nanoseconds. All methods of Store are safe for
// concurrent use; a Tx belongs to one goroutine, a Sweeper to one goroutine.
package shard

import (
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"

	"cellserver/internal/funnel"
)

// Store holds the states of keys, each in one of up to 65,536 databases. An expired key, one whose TAT is not
// after now, is absent for every caller; a Sweeper gives its memory back.
type Store struct {
	seed   maphash.Seed // secret, so that nobody can aim keys at one shard or segment
	shift  uint8        // leaves those bits of a hash that choose the shard
	shards []shard
	scans  sync.Pool // of *scanBuffer
}

// Many shards keep callers on many cores apart; few have more of a batch in each, so that what it misses in the
// cache is waited for at once.
const (
	shardsPerCore = 8
	minShards     = 16
	maxShards     = 256
)

// New returns an empty store, with a number of shards that suits GOMAXPROCS.
func New() *Store {
	n := min(max(shardsPerCore*runtime.GOMAXPROCS(0), minShards), maxShards)
	return newStore(bits.Len(uint(n - 1)))
}

func newStore(shardBits int) *Store {
	s := &Store{seed: maphash.MakeSeed(), shift: uint8(64 - shardBits), shards: make([]shard, 1<<shardBits)}
	for i := range s.shards {
		s.shards[i].table = table{seed: s.seed, skip: uint8(shardBits)}
	}
	return s
}

type shard struct {
	mu      sync.Mutex // guards all below
	table   table
	counts  counts
	expired uint64
	swept   uint64
	touched uint64 // see table.touch
	watched watched

	_ [128]byte // keeps two shards' data off one pair of cache lines, which are often fetched together
}

// Key names a state.
type Key struct {
	DB   uint16
	Name []byte
}

// Request is one funnel call, and then its answer. The store does not keep Key.Name.
type Request struct {
	Key      Key
	Limit    funnel.Limit
	Quantity int64
	Result   funnel.Result
}

// TAT returns a key's TAT in Unix nanoseconds, and false if it is absent.
func (s *Store) TAT(nowNs int64, key Key) (tatNs int64, ok bool) {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	tatNs = sh.tatLocked(nowNs, k, &key)
	return tatNs, tatNs > nowNs
}

// Delete removes a key, and reports whether it was live.
func (s *Store) Delete(nowNs int64, key Key) bool {
	k := s.ref(&key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.deleteLocked(nowNs, k, &key)
}

// Count adds each database's live keys to its place in counts; databases beyond that are passed over. It looks at
// every entry, a few segments at a time.
func (s *Store) Count(nowNs int64, counts []int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.eachSegment(sh.counter(nowNs, counts))
	}
}

// Flush removes all keys of a database, a few segments at a time.
func (s *Store) Flush(db uint16) {
	for i := range s.shards {
		s.shards[i].flush(db)
	}
}

// FlushAll removes all keys at once.
func (s *Store) FlushAll() {
	s.lockAll()
	defer s.unlockAll()
	s.flushAllLocked()
}

// lockAll locks in index order, as everything does that holds more than one shard's lock.
func (s *Store) lockAll() {
	for i := range s.shards {
		s.shards[i].mu.Lock()
	}
}

func (s *Store) unlockAll() {
	for i := range s.shards {
		s.shards[i].mu.Unlock()
	}
}

func (s *Store) flushAllLocked() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.watched.lostAll()
		sh.table.reset()
	}
}

func (s *Store) ref(key *Key) keyRef { return refOf(key, hashKey(s.seed, key.DB, key.Name)) }

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>(s.shift&63)] }

// tatLocked returns a key's TAT, or nowNs if it is absent.
func (sh *shard) tatLocked(nowNs int64, k keyRef, key *Key) int64 {
	if b, slot := sh.table.find(k, key); b != nil {
		return max(b.tatNs[slot], nowNs)
	}
	return nowNs
}

func (sh *shard) deleteLocked(nowNs int64, k keyRef, key *Key) bool {
	b, slot := sh.table.find(k, key)
	if b == nil || b.tatNs[slot] <= nowNs {
		return false
	}
	sh.table.set(k, key, b, slot, nowNs, nowNs)
	sh.changedLocked(k.hash)
	return true
}

// counter returns a visit that counts the live entries of segments.
func (sh *shard) counter(nowNs int64, counts []int) func(seg *segment, at uint64) {
	return func(seg *segment, at uint64) {
		merged := at<<seg.depth != 0 // with a part that the walk has been to
		seg.each(func(b *bucket, slot int) {
			if b.tatNs[slot] <= nowNs || merged && sh.table.prefix(sh.table.hashAt(b, slot)) < at {
				return
			}
			if db := int(sh.table.dbAt(seg, b, slot)); db < len(counts) {
				counts[db]++
			}
		})
	}
}

func (sh *shard) flush(db uint16) {
	sh.eachSegment(sh.flusher(db))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.resetIfEmptyLocked()
}

// flusher returns a visit that removes a database's entries from segments.
func (sh *shard) flusher(db uint16) func(seg *segment, at uint64) {
	return func(seg *segment, _ uint64) {
		sh.removeLocked(seg, func(b *bucket, slot int) bool { return sh.table.dbAt(seg, b, slot) == db })
	}
}

// removeLocked is table.removeWhere for entries that get lost without a caller that names them.
func (sh *shard) removeLocked(seg *segment, cond func(b *bucket, slot int) bool) (removed int) {
	if sh.watched == nil {
		return sh.table.removeWhere(seg, cond)
	}
	return sh.table.removeWhere(seg, func(b *bucket, slot int) bool {
		if !cond(b, slot) {
			return false
		}
		sh.watched.lost(sh.table.hashAt(b, slot))
		return true
	})
}

func (sh *shard) resetIfEmptyLocked() {
	if sh.table.count == 0 {
		sh.table.reset()
	}
}

// walkSegments is how many segments a walk visits before it lets others at the lock.
const walkSegments = 16

// eachSegment visits all segments, under the lock, with the prefix that the walk has come to.
func (sh *shard) eachSegment(visit func(seg *segment, at uint64)) {
	for at, more := uint64(0), true; more; {
		at, more = sh.someSegments(at, visit)
	}
}

func (sh *shard) someSegments(at uint64, visit func(seg *segment, at uint64)) (next uint64, more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.someSegmentsLocked(at, visit)
}

func (sh *shard) eachSegmentLocked(visit func(seg *segment, at uint64)) {
	for at, more := uint64(0), true; more; {
		at, more = sh.someSegmentsLocked(at, visit)
	}
}

func (sh *shard) someSegmentsLocked(at uint64, visit func(seg *segment, at uint64)) (next uint64, more bool) {
	for range walkSegments {
		if sh.table.count == 0 {
			return 0, false
		}
		seg, next := sh.table.segmentAfter(at)
		visit(seg, at)
		if next == 0 {
			return 0, false
		}
		at = next
	}
	return at, true
}

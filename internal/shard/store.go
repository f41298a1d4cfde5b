// Package shard is the lock-sharded store of limiter states. A key's hash picks one of its shards, and what is
// read, decided and written for the key happens under that shard's lock in one pass.
//
// The store has no clock: every call takes the time, as Unix nanoseconds. All methods of Store are safe for
// concurrent use; a Tx belongs to one goroutine, a Sweeper to one goroutine.
package shard

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/funnel"
)

const (
	shardBits  = 8
	shardCount = 1 << shardBits
)

// Store holds the states of keys, each in one of up to 65,536 databases. An expired key, one whose TAT is not
// after now, is absent for every caller; a Sweeper gives its memory back.
type Store struct {
	seed   maphash.Seed // secret, so that nobody can aim keys at one shard or segment
	shards [shardCount]shard
}

// New returns an empty store.
func New() *Store {
	return &Store{seed: maphash.MakeSeed()}
}

type shard struct {
	mu      sync.Mutex // guards all below
	table   table
	allowed uint64
	denied  uint64
	expired uint64

	_ [64]byte // keeps two shards' locks off one cache line
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

// Throttle answers a batch of requests in order, all of them at one time.
func (s *Store) Throttle(nowNs int64, batch []Request) {
	for i := range batch {
		q := &batch[i]
		k := s.ref(q.Key)
		s.shardOf(k.hash).throttle(nowNs, k, q)
	}
}

// TAT returns a key's TAT in Unix nanoseconds, and false if it is absent.
func (s *Store) TAT(nowNs int64, key Key) (tatNs int64, ok bool) {
	k := s.ref(key)
	sh := s.shardOf(k.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	tatNs = sh.tatLocked(nowNs, k)
	return tatNs, tatNs > nowNs
}

// Count adds each database's live keys to its place in counts; databases beyond that are passed over. It looks at
// every entry, one shard at a time.
func (s *Store) Count(nowNs int64, counts []int) {
	for i := range s.shards {
		s.shards[i].count(nowNs, counts)
	}
}

// Flush removes all keys of a database, one shard at a time.
func (s *Store) Flush(db uint16) {
	for i := range s.shards {
		s.shards[i].flush(db)
	}
}

// FlushAll removes all keys at once.
func (s *Store) FlushAll() {
	for i := range s.shards {
		s.shards[i].mu.Lock()
	}
	for i := range s.shards {
		s.shards[i].table = table{}
	}
	for i := range s.shards {
		s.shards[i].mu.Unlock()
	}
}

func (s *Store) ref(key Key) keyRef {
	// The multiplier is 2^64 divided by the golden ratio: it spreads a database's number over all bits.
	hash := maphash.Bytes(s.seed, key.Name) ^ uint64(key.DB)*0x9e3779b97f4a7c15
	return keyRef{hash: hash, name: key.Name, db: key.DB}
}

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>(64-shardBits)] }

func (sh *shard) throttle(nowNs int64, k keyRef, q *Request) {
	sh.mu.Lock()
	defer sh.mu.Unlock()

	seg, i := sh.table.find(k)
	tatNs := nowNs
	if seg != nil {
		tatNs = max(seg.slots[i].tatNs, nowNs)
	}
	var newTATNs int64
	newTATNs, q.Result = q.Limit.Throttle(tatNs, nowNs, q.Quantity)
	sh.decidedLocked(q.Result)
	if newTATNs != tatNs {
		sh.table.set(k, seg, i, nowNs, newTATNs)
	}
}

func (sh *shard) decidedLocked(r funnel.Result) {
	if r.Limited {
		sh.denied++
	} else {
		sh.allowed++
	}
}

// tatLocked returns a key's TAT, or nowNs if it is absent.
func (sh *shard) tatLocked(nowNs int64, k keyRef) int64 {
	if seg, i := sh.table.find(k); seg != nil {
		return max(seg.slots[i].tatNs, nowNs)
	}
	return nowNs
}

func (sh *shard) count(nowNs int64, counts []int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.eachSegmentLocked(func(seg *segment) {
		for i := range seg.slots {
			if s := &seg.slots[i]; s.kind != kindNone && s.tatNs > nowNs && int(s.db) < len(counts) {
				counts[s.db]++
			}
		}
	})
}

func (sh *shard) flush(db uint16) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.eachSegmentLocked(func(seg *segment) {
		sh.table.removeWhere(seg, func(s *slot) bool { return s.db == db })
	})
	if sh.table.count == 0 {
		sh.table = table{}
	}
}

func (sh *shard) eachSegmentLocked(visit func(*segment)) {
	if sh.table.count == 0 {
		return
	}
	for at := uint64(0); ; {
		seg, next := sh.table.segmentAfter(at)
		visit(seg)
		if next == 0 {
			return
		}
		at = next
	}
}

// Stats is what the store has counted since it was made.
type Stats struct {
	Keys    int    // entries, those included that expired since the sweep was last there
	Allowed uint64 // requests that passed
	Denied  uint64 // requests that were limited
	Expired uint64 // entries that the sweep removed
}

// UpdateStats adds the store's figures to st. It holds one shard's lock at a time, for a few loads.
func (s *Store) UpdateStats(st *Stats) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Keys += sh.table.count
		st.Allowed += sh.allowed
		st.Denied += sh.denied
		st.Expired += sh.expired
		sh.mu.Unlock()
	}
}

package memory

import (
	"sync"
	"time"
)

// recent is how long a shortage lasts after its last key: new keys come in bursts.
const recent = time.Minute

// Shortage detects new keys without space, by growing counters. The zero value has seen none. It is safe for
// concurrent use.
type Shortage struct {
	mu                   sync.Mutex // guards all below
	evicted, refused     uint64     // at the last Note
	evictedNs, refusedNs int64      // time of the last growth, 0 for never
}

// Note takes the counters and returns their growth since the last call.
func (s *Shortage) Note(nowNs int64, evicted, refused uint64) (moreEvicted, moreRefused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moreEvicted, moreRefused = evicted-s.evicted, refused-s.refused
	s.evicted, s.refused = evicted, refused
	if moreEvicted > 0 {
		s.evictedNs = nowNs
	}
	if moreRefused > 0 {
		s.refusedNs = nowNs
	}
	return moreEvicted, moreRefused
}

// Recent reports evictions and refusals of the last minute.
func (s *Shortage) Recent(nowNs int64) (evicted, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(ns int64) bool { return ns != 0 && nowNs-ns < int64(recent) }
	return is(s.evictedNs), is(s.refusedNs)
}

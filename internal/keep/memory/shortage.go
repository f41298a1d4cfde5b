package memory

import (
	"sync"
	"time"
)

// recent is how long a shortage lasts after the last key that found no room, because new keys come in bursts.
const recent = time.Minute

// Shortage tells whether new keys find no room, by counters that only grow. The zero value has seen none.
// It is safe for concurrent use.
type Shortage struct {
	mu                   sync.Mutex // guards all below
	evicted, refused     uint64     // when they were noted last
	evictedNs, refusedNs int64      // when they last grew, 0 for never
}

// Note notes what the counters are, and returns by how much they have grown since the call before.
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

// Recent reports whether keys were evicted for new ones, and whether new ones were refused, in the last
// minute.
func (s *Shortage) Recent(nowNs int64) (evicted, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(ns int64) bool { return ns != 0 && nowNs-ns < int64(recent) }
	return is(s.evictedNs), is(s.refusedNs)
}

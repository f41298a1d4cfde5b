package shard

import (
	"fmt"
	"runtime"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestBatchHoldsFewLocks: a batch decides enough requests under its locks before it waits for the next.
func TestBatchHoldsFewLocks(t *testing.T) {
	s, l := newStore(1), limit(t, 0, 1, 60)
	first, second := &s.shards[0], &s.shards[1]
	var batch []store.Request
	inFirst := 0
	for i := 0; inFirst < windowRequests || len(batch) == windowRequests; i++ { // and at least one more
		k := key(0, fmt.Sprint(i))
		if s.shardOf(ref(s, k).hash) == first {
			if inFirst == windowRequests {
				continue
			}
			inFirst++
		}
		batch = append(batch, store.Request{Key: k, Rule: limiter.OfFunnel(l), Quantity: 1})
	}
	second.mu.Lock()
	done := make(chan struct{})
	go func() {
		s.Throttle(t0, batch)
		close(done)
	}()
	for allowed := uint64(0); allowed < windowRequests; runtime.Gosched() {
		if first.mu.TryLock() { // while the waiter holds it, never
			allowed = first.counts.outcomes[limiter.Funnel].Allowed
			first.mu.Unlock()
		}
	}
	if n := second.counts.outcomes[limiter.Funnel].Allowed; n != 0 {
		t.Errorf("%d requests were answered in a shard that is locked", n)
	}
	second.mu.Unlock()
	<-done
	if n := second.counts.outcomes[limiter.Funnel].Allowed; int(n) != len(batch)-windowRequests {
		t.Errorf("%d requests were answered in the second shard, want %d", n, len(batch)-windowRequests)
	}
}

// TestBatchLooksAhead: a batch loads table lines before deciding.
func TestBatchLooksAhead(t *testing.T) {
	s, l := newStore(1), limit(t, 9, 1, 60)
	batch := make([]store.Request, 2*windowRequests)
	for i := range batch {
		batch[i] = store.Request{Key: key(0, fmt.Sprint(i)), Rule: limiter.OfFunnel(l), Quantity: 1}
	}
	s.Throttle(t0, batch)
	if sum := s.shards[0].touched + s.shards[1].touched; sum != 0 {
		t.Errorf("in an empty table there was %x to see", sum)
	}
	s.Throttle(t0, batch)
	if s.shards[0].touched == 0 && s.shards[1].touched == 0 {
		t.Error("nothing was loaded")
	}
}

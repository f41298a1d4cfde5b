package shard

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/store"
)

// TestMemoryUsageAddsUp: the keys' costs add up to the tables' size.
func TestMemoryUsageAddsUp(t *testing.T) {
	for _, keys := range []int{1, 100, 5000} {
		s := newStore(4)
		for i := range keys {
			put(t, s, t0, key(uint16(i%2), strings.Repeat(fmt.Sprint(i, "-"), 1+i%11)), 60)
		}
		put(t, s, t0, key(0, strings.Repeat("large", arenaKeyBytes)), 60)
		sum, n := 0, 0
		for db := range uint16(2) {
			s.Scan(t0, db, 0, 1<<30, func(k store.Key, _ store.Entry) {
				bytes, ok := s.MemoryUsage(t0, k)
				if !ok {
					t.Errorf("%.20q costs nothing", k.Name)
				}
				sum, n = sum+bytes, n+1
			})
		}
		taken := s.tableBytes()
		for i := range s.shards {
			t := &s.shards[i].long
			taken += t.chunks.inUse()*chunkBytes + t.large.bytes + sliceHeaderBytes*max(0, len(t.large.bufs)-1-len(t.large.free))
		}
		// Empty shards have no segments, and shares are rounded up, twice for a long key.
		if sum < taken || sum > taken+2*n || n != keys+1 {
			t.Errorf("%d keys cost %d bytes, of %d", n, sum, taken)
		}
	}
}

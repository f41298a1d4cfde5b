package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryInterval = time.Second
	// quietBytes is how little is allocated in an interval that counts as quiet.
	quietBytes = 1 << 20
	// worthBytes is how much must have been allocated or dropped since the last time for a collection to be worth
	// it, and worthShare which part of the live heap, so that its cost stays small beside that of the allocations.
	worthBytes = 16 << 20
	worthShare = 8
	keyBytes   = 40 // that the store drops at the least with a key
)

// returnMemory gives memory back to the system when it gets quiet after a burst, such as a million keys that
// expired or a flood of large commands. The collector alone would not run before the next burst: a server at
// work on keys that exist allocates nothing. keys counts those in the store.
func returnMemory(ctx context.Context, keys func() int) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	var last, collected uint64
	mostKeys := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(samples)
		allocated, live := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		now := keys()
		mostKeys = max(mostKeys, now)
		garbage := allocated - collected + uint64(mostKeys-now)*keyBytes
		quiet := allocated-last < quietBytes
		last = allocated
		if quiet && garbage > max(worthBytes, live/worthShare) {
			debug.FreeOSMemory()
			collected, mostKeys = allocated, now
		}
	}
}

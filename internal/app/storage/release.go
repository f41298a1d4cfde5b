package storage

import (
	"context"
	"runtime/metrics"
	"time"

	"cellserver/internal/keep/memory"
)

const (
	memoryInterval = time.Second
	// quietBytes is the largest allocation in an interval that counts as quiet.
	quietBytes = 1 << 20
	// A collection pays once garbageBytes, and 1/garbageShare of the live heap, were allocated or dropped
	// since the last.
	garbageBytes = 16 << 20
	garbageShare = 8
	keyBytes     = 40 // least memory freed with a key
)

// returnMemory returns memory to the system in a quiet time after a burst, such as a million expired keys or
// a flood of large commands. The collector alone would wait for the next burst: requests for existing keys
// and ending clients allocate nothing. keys returns the number of keys, held the clients' bytes.
func returnMemory(ctx context.Context, keys func() int, held func() int64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	var last, collected uint64
	mostKeys, mostHeld := 0, int64(0)
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
		heldNow := held()
		mostHeld = max(mostHeld, heldNow)
		garbage := allocated - collected + uint64(mostKeys-now)*keyBytes + uint64(mostHeld-heldNow)
		quiet := allocated-last < quietBytes
		last = allocated
		if quiet && garbage > max(garbageBytes, live/garbageShare) {
			memory.Release()
			collected, mostKeys, mostHeld = allocated, now, heldNow
		}
	}
}

package storage

import (
	"context"
	"runtime/metrics"
	"time"

	"cellserver/internal/keep/memory"
)

const (
	memoryInterval = time.Second
	// quietBytes is the most that is allocated in an interval that counts as quiet.
	quietBytes = 1 << 20
	// A collection is worth its cost once garbageBytes, and 1/garbageShare of the live heap, were allocated or dropped
	// since the last one.
	garbageBytes = 16 << 20
	garbageShare = 8
	keyBytes     = 40 // the least memory that the store frees with a key
)

// returnMemory returns memory to the system when the server becomes quiet after a burst, such as a million keys that
// expired or a flood of large commands. The garbage collector alone would not run before the next burst, because
// requests for existing keys allocate nothing, and clients that end allocate nothing. keys returns the number of keys in the
// store, and held how many bytes the clients hold.
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

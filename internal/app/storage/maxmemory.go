package storage

import (
	"context"
	"log/slog"
	"runtime/metrics"
	"sync"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/often"
	"cellserver/internal/keep/memory"
	"cellserver/internal/store"
)

// boundMemory sets the maximum memory of a store and of the process. The options are valid.
func boundMemory(o *settings.Options, s store.Bounded, log *slog.Logger) *memory.Bound {
	policy, _ := memory.ParsePolicy(o.MaxMemoryPolicy)
	maxBytes, tooSmall := o.MaxMemoryBytes()
	state := memory.State{MaxBytes: maxBytes, Policy: policy, Clients: o.MaxMemoryClients, Values: o.MaxMemoryValues}
	if o.MaxMemory == settings.AutoMemory && state.Check() != nil {
		log.Warn("--maxmemory-clients leaves too little of the cgroup's memory limit for keys; 25 % are for clients instead",
			"maxmemory", maxBytes, "maxmemory_clients", state.Clients.String())
		state.Clients = settings.Quarter()
	}
	bound := memory.NewBound(s)
	bound.Set(state)
	switch shares := bound.State().Shares; {
	case tooSmall:
		log.Warn("70 % of the cgroup's memory limit is less than the server needs; raise the limit, or set --maxmemory",
			"maxmemory", maxBytes)
	case maxBytes != 0:
		log.Info("memory is bounded", "maxmemory", maxBytes, "policy", o.MaxMemoryPolicy, "keys", shares.Tables, "values", shares.Values,
			"clients", shares.Clients, "scripts", shares.Scripts)
	}
	return bound
}

// memoryWarnings logs events at the maximum.
type memoryWarnings struct {
	log    *slog.Logger
	now    func() int64
	bound  *memory.Bound
	level  memory.Level
	short  *memory.Shortage
	events often.Counter
	// since the last line
	evicted, refused uint64
}

// TendMemory returns memory to the system and warns of the maximum until ctx is done. held returns the
// clients' bytes.
func (s *Storage) TendMemory(ctx context.Context, held func() int64) {
	var parts sync.WaitGroup
	parts.Go(func() { returnMemory(ctx, s.Keys, held) })
	parts.Go(func() { s.warnOfMemory(ctx) })
	parts.Wait()
}

// warnOfMemory looks once a second, so that evictions cost requests no log line.
func (s *Storage) warnOfMemory(ctx context.Context) {
	w := memoryWarnings{log: s.log, now: s.clock.Now, bound: s.Memory, short: &s.shortage}
	every(ctx, time.Second, func() {
		var st store.Stats
		s.Store.UpdateStats(&st)
		w.look(st)
	})
}

func (w *memoryWarnings) look(st store.Stats) {
	state := w.bound.State()
	if percent := w.level.Crossed(int64(st.Bytes), int64(st.MaxBytes)); percent > 0 {
		w.log.Warn("the memory for keys is almost used up", "percent", percent, "bytes", st.Bytes, "of", st.MaxBytes, "keys", st.Keys,
			"maxmemory", state.MaxBytes, "policy", state.Policy.String(),
			"hint", "raise --maxmemory, shorten periods, or find out with CL.TOP and SCAN who makes so many keys")
	}
	evicted, refused := w.short.Note(w.now(), st.Evicted, st.Refused)
	w.evicted, w.refused = w.evicted+evicted, w.refused+refused
	if evicted+refused == 0 || w.events.Due(w.now()) == 0 {
		return
	}
	w.log.Warn("new keys found no room", "evicted", w.evicted, "refused", w.refused, "keys", st.Keys, "bytes", st.Bytes,
		"maxmemory", state.MaxBytes, "policy", state.Policy.String(),
		"hint", "what is evicted has its full burst again; raise --maxmemory, or limit what one address can do")
	w.evicted, w.refused = 0, 0
}

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

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
	bound := memory.NewBound(s, memory.Available())
	bound.Set(state)
	if tooSmall {
		log.Warn("70 % of the cgroup's memory limit is less than the server needs; raise the limit, or set --maxmemory",
			"maxmemory", maxBytes)
	}
	return bound
}

// logMemory logs the maximum of memory and its shares, or without one the clients' maximum.
func (s *Storage) logMemory() {
	maxBytes, tooSmall := s.options.MaxMemoryBytes()
	if clients := s.Memory.ClientBytes(); maxBytes == 0 && clients != 0 {
		s.log.Info("memory is unbounded, but for what clients hold", "clients", clients, "maxmemory_clients", s.options.MaxMemoryClients.String(),
			"available", memory.Available(), "hint", "bound all by --maxmemory")
	} else if maxBytes == 0 {
		s.log.Warn("memory is unbounded, also for what clients hold", "hint", "set --maxmemory, or --maxmemory-clients to a size")
	}
	if shares := s.Memory.State().Shares; maxBytes != 0 && !tooSmall {
		s.log.Info("memory is bounded", "maxmemory", maxBytes, "policy", s.options.MaxMemoryPolicy, "keys", shares.Tables,
			"values", shares.Values, "clients", shares.Clients, "scripts", shares.Scripts)
	}
}

// memoryWarnings logs events at the maxima of limiters and of values.
type memoryWarnings struct {
	log              *slog.Logger
	now              func() int64
	bound            *memory.Bound
	limiters, values roomWarnings
}

// roomWarnings are the warnings about keys with a maximum in common.
type roomWarnings struct {
	short              *memory.Shortage
	filled, filledHint string
	full, fullHint     string

	level  memory.Level
	events often.Counter
	// since the last line
	evicted, refused uint64
}

func ofLimiters(short *memory.Shortage) roomWarnings {
	return roomWarnings{
		short:      short,
		filled:     "the memory for keys is almost used up",
		filledHint: "raise --maxmemory, shorten periods, or find out with CL.TOP and SCAN who makes so many keys",
		full:       "new keys found no room",
		fullHint:   "what is evicted has its full burst again; raise --maxmemory, or limit what one address can do",
	}
}

func ofValues(short *memory.Shortage) roomWarnings {
	const hint = "raise --maxmemory-values (at most half of what --maxmemory leaves for keys), or give values shorter times to live"
	return roomWarnings{
		short:      short,
		filled:     "the memory for values is almost used up",
		filledHint: hint + "; those without any (endless) are never evicted, and --require-ttl refuses them",
		full:       "values found no room",
		fullHint:   "an evicted counter starts again at 0, so its limit is forgotten; " + hint,
	}
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
	w := memoryWarnings{
		log: s.log, now: s.clock.Now, bound: s.Memory,
		limiters: ofLimiters(&s.shortage), values: ofValues(&s.valueShortage),
	}
	every(ctx, time.Second, func() {
		var st store.Stats
		s.Store.UpdateStats(&st)
		w.look(st)
	})
}

func (w *memoryWarnings) look(st store.Stats) {
	limiters := store.ValueStats{
		Keys: st.Keys - st.Values.Keys, Bytes: st.Bytes, MaxBytes: st.MaxBytes, Evicted: st.Evicted, Refused: st.Refused,
	}
	w.limiters.look(w, &limiters)
	w.values.look(w, &st.Values)
}

func (r *roomWarnings) look(w *memoryWarnings, st *store.ValueStats) {
	state := w.bound.State()
	log := w.log.With("keys", st.Keys, "endless", st.Endless, "bytes", st.Bytes, "of", st.MaxBytes,
		"maxmemory", state.MaxBytes, "policy", state.Policy.String())
	if percent := r.level.Crossed(int64(st.Bytes), int64(st.MaxBytes)); percent > 0 {
		log.Warn(r.filled, "percent", percent, "hint", r.filledHint)
	}
	evicted, refused := r.short.Note(w.now(), st.Evicted, st.Refused)
	r.evicted, r.refused = r.evicted+evicted, r.refused+refused
	if evicted+refused == 0 || r.events.Due(w.now()) == 0 {
		return
	}
	log.Warn(r.full, "evicted", r.evicted, "refused", r.refused, "hint", r.fullHint)
	r.evicted, r.refused = 0, 0
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
	var last, collected uint64
	peakKeys, peakHeld := 0, int64(0)
	every(ctx, memoryInterval, func() {
		metrics.Read(samples)
		allocated, live := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		now := keys()
		peakKeys = max(peakKeys, now)
		heldNow := held()
		peakHeld = max(peakHeld, heldNow)
		garbage := allocated - collected + uint64(peakKeys-now)*keyBytes + uint64(peakHeld-heldNow)
		quiet := allocated-last < quietBytes
		last = allocated
		if quiet && garbage > max(garbageBytes, live/garbageShare) {
			memory.Release()
			collected, peakKeys, peakHeld = allocated, now, heldNow
		}
	})
}

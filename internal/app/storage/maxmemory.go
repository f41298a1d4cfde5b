package storage

import (
	"context"
	"log/slog"
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
	clients := o.MaxMemoryClients
	if o.MaxMemory == settings.AutoMemory && memory.Check(maxBytes, clients) != nil {
		log.Warn("--maxmemory-clients leaves too little of the cgroup's memory limit for keys; 25 % are for clients instead",
			"maxmemory", maxBytes, "maxmemory_clients", clients.String())
		clients = settings.DefaultClients()
	}
	bound := memory.NewBound(s)
	bound.Set(maxBytes, policy, clients)
	switch shares := bound.State().Shares; {
	case tooSmall:
		log.Warn("70 % of the cgroup's memory limit is less than the server needs; raise the limit, or set --maxmemory",
			"maxmemory", maxBytes)
	case maxBytes != 0:
		log.Info("memory is bounded", "maxmemory", maxBytes, "policy", o.MaxMemoryPolicy, "keys", shares.Tables,
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

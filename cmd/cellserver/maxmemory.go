package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/commands/admin"
	"cellserver/internal/memory"
	"cellserver/internal/often"
	"cellserver/internal/store"
)

const autoMemory = "auto"

func defaultClients() memory.Part {
	p, _ := memory.ParsePart("25%")
	return p
}

func (o *options) defineMemory(fs *pflag.FlagSet) {
	fs.StringVar(&o.maxMemory, "maxmemory", autoMemory, "largest `size` of the server's memory, such as 150mb; 0 for none; auto is 70 % of the cgroup's limit, and none without one")
	fs.StringVar(&o.maxMemoryPolicy, "maxmemory-policy", memory.PolicyName(store.VolatileTTL), "`what` becomes of a new key that has no room: volatile-ttl (it evicts one that would expire soon) or noeviction (it is refused)")
}

func (o *options) checkMemory() error {
	if _, err := memory.ParsePolicy(o.maxMemoryPolicy); err != nil {
		return fmt.Errorf("--maxmemory-policy: %w", err)
	}
	if o.maxMemory == autoMemory {
		return nil
	}
	bytes, err := memory.Parse(o.maxMemory)
	if err != nil {
		return fmt.Errorf("--maxmemory must be auto or a size such as 150mb, got %q", o.maxMemory)
	}
	if err := memory.Check(bytes, o.maxMemoryClients); err != nil {
		return fmt.Errorf("--maxmemory %w", err)
	}
	return nil
}

// boundMemory sets the maximum of a store's memory and of the process. The options were checked.
func (o *options) boundMemory(s store.Bounded, log *slog.Logger) *memory.Bound {
	policy, _ := memory.ParsePolicy(o.maxMemoryPolicy)
	maxBytes, tooSmall := memory.Auto()
	if o.maxMemory != autoMemory {
		maxBytes, _ = memory.Parse(o.maxMemory)
		tooSmall = false
	}
	clients := o.maxMemoryClients
	if o.maxMemory == autoMemory && memory.Check(maxBytes, clients) != nil {
		log.Warn("--maxmemory-clients leaves too little of the cgroup's memory limit for keys; 25 % are for clients instead",
			"maxmemory", maxBytes, "maxmemory_clients", clients.String())
		clients = defaultClients()
	}
	bound := memory.NewBound(s)
	bound.Set(maxBytes, policy, clients)
	switch shares := bound.State().Shares; {
	case tooSmall:
		log.Warn("70 % of the cgroup's memory limit is less than the server needs; raise the limit, or set --maxmemory",
			"maxmemory", maxBytes)
	case maxBytes != 0:
		log.Info("memory is bounded", "maxmemory", maxBytes, "policy", o.maxMemoryPolicy, "keys", shares.Tables,
			"clients", shares.Clients, "scripts", shares.Scripts)
	}
	return bound
}

// memorySettings are Redis's names for the maximum.
func (a *app) memorySettings() []admin.Setting {
	return []admin.Setting{
		a.memorySetting("maxmemory", func(s *memory.State) string { return strconv.FormatInt(s.MaxBytes, 10) },
			func(s *memory.State, value string) (err error) {
				s.MaxBytes, err = memory.Parse(value)
				return err
			}),
		a.memorySetting("maxmemory-clients", func(s *memory.State) string { return s.Clients.String() },
			func(s *memory.State, value string) error { return s.Clients.Set(value) }),
		a.memorySetting("maxmemory-policy", func(s *memory.State) string { return memory.PolicyName(s.Policy) },
			func(s *memory.State, value string) (err error) {
				if s.Policy, err = memory.ParsePolicy(value); err != nil {
					return errors.New("argument: " + err.Error())
				}
				return nil
			}),
	}
}

func (a *app) memorySetting(name string, get func(*memory.State) string, read func(*memory.State, string) error) admin.Setting {
	return admin.Setting{
		Name: name,
		Get: func() string {
			state := a.memory.State()
			return get(&state)
		},
		Set: func(value string) (func(), error) {
			state := a.memory.State()
			if err := read(&state, value); err != nil {
				return nil, err
			}
			if err := memory.Check(state.MaxBytes, state.Clients); err != nil {
				return nil, errors.New("argument " + err.Error())
			}
			return func() {
				state := a.memory.State() // which another argument of the same command may have changed
				_ = read(&state, value)
				a.memory.Set(state.MaxBytes, state.Policy, state.Clients)
			}, nil
		},
	}
}

// memoryWarnings logs what happens at the maximum.
type memoryWarnings struct {
	log    *slog.Logger
	now    func() int64
	bound  *memory.Bound
	level  memory.Level
	last   store.Stats
	events often.Counter
	// since the last line
	evicted, refused uint64
}

// tendMemory gives memory back and warns of the maximum until ctx is done.
func (a *app) tendMemory(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { returnMemory(ctx, a.keys, a.engine.Clients.Memory) })
	parts.Go(func() { a.warnOfMemory(ctx) })
	parts.Wait()
}

// warnOfMemory looks once a second, so that evictions cost no request a line.
func (a *app) warnOfMemory(ctx context.Context) {
	w := memoryWarnings{log: a.log, now: a.now, bound: a.memory}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			var st store.Stats
			a.store.UpdateStats(&st)
			w.look(st)
		}
	}
}

func (w *memoryWarnings) look(st store.Stats) {
	state := w.bound.State()
	if percent := w.level.Crossed(int64(st.Bytes), int64(st.MaxBytes)); percent > 0 {
		w.log.Warn("the memory for keys is almost used up", "percent", percent, "bytes", st.Bytes, "of", st.MaxBytes, "keys", st.Keys,
			"maxmemory", state.MaxBytes, "policy", memory.PolicyName(state.Policy),
			"hint", "raise --maxmemory, shorten periods, or find out with CL.TOP and SCAN who makes so many keys")
	}
	evicted, refused := st.Evicted-w.last.Evicted, st.Refused-w.last.Refused
	w.last = st
	w.evicted, w.refused = w.evicted+evicted, w.refused+refused
	if evicted+refused == 0 || w.events.Due(w.now()) == 0 {
		return
	}
	w.log.Warn("new keys found no room", "evicted", w.evicted, "refused", w.refused, "keys", st.Keys, "bytes", st.Bytes,
		"maxmemory", state.MaxBytes, "policy", memory.PolicyName(state.Policy),
		"hint", "what is evicted has its full burst again; raise --maxmemory, or limit what one address can do")
	w.evicted, w.refused = 0, 0
}

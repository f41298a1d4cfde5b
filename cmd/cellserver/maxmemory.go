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

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/often"
	"cellserver/internal/keep/memory"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/store"
)

const autoMemory = "auto"

func defaultClients() memory.Part {
	p, _ := memory.ParsePart("25%")
	return p
}

func (o *options) defineMemory(fs *pflag.FlagSet) {
	o.maxMemory = autoMemory
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "auto or a size, such as 150mb", Get: func() string { return o.maxMemory },
		Set: func(text string) bool {
			_, err := memory.Parse(text)
			if err == nil || text == autoMemory {
				o.maxMemory = text
			}
			return err == nil || text == autoMemory
		},
	}, "maxmemory", "largest `size` of the server's memory, such as 150mb; 0 for none; auto is 70 % of the cgroup's limit, and none without one")
	flagvalue.ChoiceVar(fs, &o.maxMemoryPolicy, "maxmemory-policy", store.VolatileTTL.String(), "`what` becomes of a new key that has no room: volatile-ttl (it evicts one that would expire soon) or noeviction (it is refused)", memory.PolicyNames()...)
}

func (o *options) checkMemory() error {
	if o.maxMemory == autoMemory {
		return nil
	}
	bytes, _ := memory.Parse(o.maxMemory)
	if err := memory.Check(bytes, o.maxMemoryClients); err != nil {
		return fmt.Errorf("--maxmemory %w", err)
	}
	return nil
}

// maxMemoryBytes is what --maxmemory comes to, and whether that is less than the server needs.
func (o *options) maxMemoryBytes() (maxBytes int64, tooSmall bool) {
	if o.maxMemory == autoMemory {
		return memory.Auto()
	}
	maxBytes, _ = memory.Parse(o.maxMemory)
	return maxBytes, false
}

// boundMemory sets the maximum of a store's memory and of the process. The options were checked.
func (o *options) boundMemory(s store.Bounded, log *slog.Logger) *memory.Bound {
	policy, _ := memory.ParsePolicy(o.maxMemoryPolicy)
	maxBytes, tooSmall := o.maxMemoryBytes()
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

// memorySetting is a setting of the maximum, by Redis's name.
type memorySetting struct {
	name string
	get  func(memory.State) string
	read func(to *memory.State, value string) error
}

func allMemorySettings() []memorySetting {
	return []memorySetting{
		{
			"maxmemory", func(s memory.State) string { return strconv.FormatInt(s.MaxBytes, 10) },
			func(to *memory.State, value string) (err error) {
				to.MaxBytes, err = memory.Parse(value)
				return err
			},
		},
		{
			"maxmemory-clients", func(s memory.State) string { return s.Clients.String() },
			func(to *memory.State, value string) error { return to.Clients.Set(value) },
		},
		{
			"maxmemory-policy", func(s memory.State) string { return s.Policy.String() },
			func(to *memory.State, value string) (err error) {
				if to.Policy, err = memory.ParsePolicy(value); err != nil {
					return errors.New("argument: " + err.Error())
				}
				return nil
			},
		},
	}
}

func (a *app) memorySettings() []admin.Setting {
	var settings []admin.Setting
	for _, m := range allMemorySettings() {
		settings = append(settings, admin.Setting{
			Name: m.name,
			Get:  func() string { return m.get(a.memory.State()) },
			SetWith: func(value string, other func(string) (string, bool)) (func(), error) {
				state := a.memory.State()
				if err := m.read(&state, value); err != nil {
					return nil, err
				}
				readOthers(&state, m.name, other)
				if err := memory.Check(state.MaxBytes, state.Clients); err != nil {
					return nil, errors.New("argument " + err.Error())
				}
				return func() { a.memory.Set(state.MaxBytes, state.Policy, state.Clients) }, nil
			},
		})
	}
	return settings
}

// readOthers reads what the same command sets beside one setting. What is wrong there is said of it.
func readOthers(to *memory.State, but string, other func(name string) (string, bool)) {
	for _, m := range allMemorySettings() {
		if value, ok := other(m.name); ok && m.name != but {
			if with := *to; m.read(&with, value) == nil {
				*to = with
			}
		}
	}
}

// memoryWarnings logs what happens at the maximum.
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

// tendMemory gives memory back and warns of the maximum until ctx is done.
func (a *app) tendMemory(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { returnMemory(ctx, a.keys, a.engine.Clients.Memory) })
	parts.Go(func() { a.warnOfMemory(ctx) })
	parts.Wait()
}

// warnOfMemory looks once a second, so that evictions cost no request a line.
func (a *app) warnOfMemory(ctx context.Context) {
	w := memoryWarnings{log: a.log, now: a.now, bound: a.memory, short: &a.shortage}
	every(ctx, time.Second, func() {
		var st store.Stats
		a.store.UpdateStats(&st)
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

// Package memory bounds what a server takes: how large the maximum is, which part of it is whose, and what the
// collector is told. A Bound is safe for concurrent use.
package memory

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"cellserver/internal/store"
)

const (
	mib = 1 << 20
	// LeastBytes is the smallest maximum: with less, hardly any part would be left for keys.
	LeastBytes = 48 * mib
	// programBytes are the pages of the program's file, which the collector does not know of; baseBytes is what an idle
	// server has allocated. They were measured.
	programBytes = 16 * mib
	baseBytes    = 8 * mib
	// leastTableBytes must be left for keys.
	leastTableBytes = 4 * mib
	// One in so many of the maximum's bytes is for scripts, and for garbage that is not collected yet. The tables are
	// pointer-free and evict without allocating, so a tenth is enough for collections to be rare.
	scriptsShare     = 16
	collectorShare   = 10
	mostScriptsBytes = 64 * mib
	// One in so many is kept from the collector's limit: under a flood, that much is allocated while a collection runs. It was
	// measured.
	lagShare = 20
	// autoPercent of a cgroup's limit is the maximum where none is set: the kernel's own memory for sockets counts
	// against that limit, too.
	autoPercent = 70
)

// Shares is how a maximum is divided. The sum is the maximum, if that passes Check.
type Shares struct {
	Clients   int64 // buffers, queued commands and watched keys of all clients
	Scripts   int64 // compiled and cached
	Base      int64 // of the process
	Collector int64 // garbage
	Tables    int64 // keys
}

// Split divides a maximum that passes Check.
func Split(maxBytes int64, clients Part) Shares {
	s := Shares{
		Clients:   clients.Of(maxBytes),
		Scripts:   min(maxBytes/scriptsShare, mostScriptsBytes),
		Base:      programBytes + baseBytes,
		Collector: maxBytes / collectorShare,
	}
	s.Tables = max(maxBytes-s.Clients-s.Scripts-s.Base-s.Collector, leastTableBytes)
	return s
}

func (s Shares) sum() int64 { return s.Clients + s.Scripts + s.Base + s.Collector + s.Tables }

// Check refuses a maximum that is too small, or of which clients leave too little. 0 is none.
func Check(maxBytes int64, clients Part) error {
	switch {
	case maxBytes == 0:
	case maxBytes < LeastBytes:
		return fmt.Errorf("must be 0 for no maximum, or at least %dmb, got %d bytes", LeastBytes/mib, maxBytes)
	case Split(maxBytes, clients).sum() > maxBytes:
		return fmt.Errorf("leaves less than %dmb for keys: maxmemory is %d bytes and maxmemory-clients %s; raise the one or lower the other",
			leastTableBytes/mib, maxBytes, clients.String())
	}
	return nil
}

// Auto returns the maximum that suits the cgroup of this process, or 0 if that has no limit. tooSmall says that the
// limit leaves less than LeastBytes, which is then the maximum nevertheless: it is better than none.
func Auto() (maxBytes int64, tooSmall bool) {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		return 0, false // there is none, or no way to know it
	}
	return autoOf(limit)
}

func autoOf(limit uint64) (maxBytes int64, tooSmall bool) {
	maxBytes = int64(min(limit, math.MaxInt64/100) / 100 * autoPercent)
	return max(maxBytes, LeastBytes), maxBytes < LeastBytes
}

// Bound is the maximum of a server. A nil Bound has none, and keeps to it.
type Bound struct {
	store       store.Bounded
	systemLimit int64 // of the collector, by GOMEMLIMIT

	mu           sync.Mutex // guards all below
	state        State
	limitClients func(bytes int64) // nil before OnClients
}

// State is what a Bound is set to.
type State struct {
	MaxBytes int64 // 0 for none
	Policy   store.Policy
	Clients  Part   // of all memory; without a maximum a size holds, and a percentage is no limit
	Shares   Shares // of MaxBytes
}

// NewBound returns a bound that has no maximum yet. It belongs to the process, as the collector's limit does.
func NewBound(s store.Bounded) *Bound {
	return &Bound{store: s, systemLimit: debug.SetMemoryLimit(-1)}
}

// State returns what is set.
func (b *Bound) State() State {
	if b == nil {
		return State{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Maximum returns what others need to know of what is set.
func (b *Bound) Maximum() store.Maximum {
	st := b.State()
	return store.Maximum{Bytes: st.MaxBytes, Policy: st.Policy, ScriptBytes: st.Shares.Scripts}
}

// OnClients has limit told what clients may hold together, now and whenever that changes; 0 is no limit.
func (b *Bound) OnClients(limit func(bytes int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limitClients = limit
	limit(b.state.Clients.Of(b.state.MaxBytes))
}

// Set sets a maximum and the clients' part that pass Check, or no maximum by 0. A smaller GOMEMLIMIT of the environment
// stays as it is.
func (b *Bound) Set(maxBytes int64, policy store.Policy, clients Part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = State{MaxBytes: maxBytes, Policy: policy, Clients: clients}
	limit := b.systemLimit
	if maxBytes != 0 {
		b.state.Shares = Split(maxBytes, clients)
		limit = min(limit, maxBytes-programBytes-maxBytes/lagShare)
	}
	debug.SetMemoryLimit(limit)
	b.store.SetMaxBytes(b.state.Shares.Tables, policy)
	if b.limitClients != nil {
		b.limitClients(clients.Of(maxBytes))
	}
}

// PolicyNames are the policies by Redis's names, in the order of their values.
func PolicyNames() []string { return []string{store.VolatileTTL.String(), store.NoEviction.String()} }

// ParsePolicy reads a policy's name.
func ParsePolicy(name string) (store.Policy, error) {
	for p, known := range PolicyNames() {
		if name == known {
			return store.Policy(p), nil
		}
	}
	switch name {
	case "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random":
		return 0, fmt.Errorf("the policy %s is not supported; set volatile-ttl or noeviction", name)
	}
	return 0, fmt.Errorf("must be volatile-ttl or noeviction, got %q", name)
}

// Release gives the system the memory that is in no use. What pools keep is forgotten by the second of two collections, which
// FreeOSMemory makes.
func Release() {
	runtime.GC()
	debug.FreeOSMemory()
}

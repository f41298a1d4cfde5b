// Package memory bounds the server's memory: it divides a maximum and sets the collector's limit. A Bound is
// safe for concurrent use.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"cellserver/internal/store"
)

const (
	mib = 1 << 20
	// LeastBytes is the smallest maximum that leaves space for keys.
	LeastBytes = 48 * mib
	// programBytes is the program file's pages, unknown to the collector; baseBytes is an idle server's
	// allocation. Both were measured.
	programBytes = 16 * mib
	baseBytes    = 8 * mib
	// leastTableBytes is the least space for limiters, leastValueBytes that for values.
	leastTableBytes = 7 * mib / 2
	leastValueBytes = mib / 2
	// scriptsShare: this part of the maximum is for scripts, and for garbage. The tables are pointer-free and
	// evict without allocating, so a tenth makes collections rare.
	scriptsShare     = 16
	collectorShare   = 10
	mostScriptsBytes = 64 * mib
	// lagShare is kept from the collector's limit: measured allocation during a collection under a flood.
	lagShare = 20
	// autoPercent of a cgroup's limit is the default maximum: kernel memory for sockets counts against that
	// limit, too.
	autoPercent = 70
)

// Shares divide a maximum; their sum is the maximum if it passes Check.
type Shares struct {
	Clients   int64 // buffers, queued commands and watched keys
	Scripts   int64 // compiled and cached ones
	Base      int64 // of the process
	Collector int64 // garbage
	Tables    int64 // limiters
	Values    int64
}

// Split divides the maximum. Limiters keep at least half of what is left for keys.
func (s State) Split() Shares {
	parts := Shares{
		Clients:   s.Clients.Of(s.MaxBytes),
		Scripts:   min(s.MaxBytes/scriptsShare, mostScriptsBytes),
		Base:      programBytes + baseBytes,
		Collector: s.MaxBytes / collectorShare,
	}
	left := s.MaxBytes - parts.Clients - parts.Scripts - parts.Base - parts.Collector
	parts.Values = max(min(s.Values.Of(s.MaxBytes), left-max(left/2, leastTableBytes)), leastValueBytes)
	parts.Tables = max(left-parts.Values, leastTableBytes)
	return parts
}

func (s Shares) sum() int64 {
	return s.Clients + s.Scripts + s.Base + s.Collector + s.Tables + s.Values
}

// Check refuses a maximum that is too small, or leaves too little beside clients. 0 is no maximum.
func (s State) Check() error {
	switch {
	case s.MaxBytes == 0:
	case s.MaxBytes < LeastBytes:
		return fmt.Errorf("must be 0 for no maximum, or at least %dmb, got %d bytes", LeastBytes/mib, s.MaxBytes)
	case s.Split().sum() > s.MaxBytes:
		return fmt.Errorf("leaves less than %dmb for keys: maxmemory is %d bytes and maxmemory-clients %s; raise the one or lower the other",
			(leastTableBytes+leastValueBytes)/mib, s.MaxBytes, s.Clients.String())
	}
	return nil
}

// Auto returns the maximum for this process's cgroup, or 0 without a limit. tooSmall says that the limit does
// not leave LeastBytes, which is returned nevertheless.
func Auto() (maxBytes int64, tooSmall bool) {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		return 0, false // none, or unknown
	}
	return autoOf(limit)
}

func autoOf(limit uint64) (maxBytes int64, tooSmall bool) {
	maxBytes = int64(min(limit, math.MaxInt64/100) / 100 * autoPercent)
	return max(maxBytes, LeastBytes), maxBytes < LeastBytes
}

// Available returns the memory that this process may take: the least of its cgroup's limit, the machine's
// memory and GOMEMLIMIT; 0 if all are unknown.
func Available() (bytes int64) {
	least := debug.SetMemoryLimit(-1)
	for _, source := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if limit, err := source(); err == nil {
			least = min(least, int64(min(limit, math.MaxInt64)))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// Bound is a server's maximum. A nil Bound never has one.
type Bound struct {
	store       store.Bounded
	available   int64 // as of Available
	systemLimit int64 // of the collector, by GOMEMLIMIT

	mu           sync.Mutex // rank 60: guards all below
	state        State
	limitClients func(bytes int64) // nil before OnClients
}

// State is a Bound's settings.
type State struct {
	MaxBytes int64 // 0 for none
	Policy   store.Policy
	Clients  Part   // of all memory; without a maximum, a percentage is of what is available
	Values   Part   // of all memory; without a maximum, a size holds and a percentage does not
	Shares   Shares // of MaxBytes
}

// NewBound returns a bound without a maximum, on available bytes. Like the collector's limit, it belongs to
// the process.
func NewBound(s store.Bounded, available int64) *Bound {
	return &Bound{store: s, available: available, systemLimit: debug.SetMemoryLimit(-1)}
}

func (b *Bound) State() State {
	if b == nil {
		return State{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *Bound) Maximum() store.Maximum {
	st := b.State()
	return store.Maximum{Bytes: st.MaxBytes, Policy: st.Policy, ScriptBytes: st.Shares.Scripts}
}

// OnClients calls limit with the clients' common limit, now and after each change; 0 for no limit.
func (b *Bound) OnClients(limit func(bytes int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limitClients = limit
	limit(b.clientBytesLocked())
}

// ClientBytes returns the clients' common limit; 0 for no limit.
func (b *Bound) ClientBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clientBytesLocked()
}

func (b *Bound) clientBytesLocked() int64 {
	return b.state.Clients.Of(cmp.Or(b.state.MaxBytes, b.available))
}

// Set sets a maximum, or none by 0, and the parts, which have passed Check. A smaller GOMEMLIMIT stays in
// force.
func (b *Bound) Set(s State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := b.systemLimit
	s.Shares = Shares{Values: s.Values.Of(0)}
	if s.MaxBytes != 0 {
		s.Shares = s.Split()
		limit = min(limit, s.MaxBytes-programBytes-s.MaxBytes/lagShare)
	}
	b.state = s
	debug.SetMemoryLimit(limit)
	b.store.SetMaxBytes(s.Shares.Tables, s.Policy)
	b.store.SetMaxValueBytes(s.Shares.Values)
	if b.limitClients != nil {
		b.limitClients(b.clientBytesLocked())
	}
}

// PolicyNames returns Redis's names of the policies in order of their values.
func PolicyNames() []string { return []string{store.VolatileTTL.String(), store.NoEviction.String()} }

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

// Release returns unused memory to the system. Pools are emptied by the second collection, FreeOSMemory's.
func Release() {
	runtime.GC()
	debug.FreeOSMemory()
}

// Level reports used shares of a maximum worth a warning. The zero value has seen none. It belongs to one
// goroutine.
type Level struct{ percent int }

// Levels, and the distance below one that permits another warning.
const (
	warnPercent   = 75
	urgentPercent = 90
	backPercent   = 5
)

// Crossed returns the level reached since the last call, in percent, or 0.
func (l *Level) Crossed(used, most int64) (percent int) {
	if most <= 0 {
		l.percent = 0
		return 0
	}
	now := int(float64(used) / float64(most) * 100)
	reached := 0
	for _, level := range []int{warnPercent, urgentPercent} {
		if now >= level || l.percent >= level && now >= level-backPercent {
			reached = level
		}
	}
	if reached > l.percent {
		percent = reached
	}
	l.percent = reached
	return percent
}

// recent is a shortage's duration after its last key: new keys come in bursts.
const recent = time.Minute

// Shortage detects new keys without space, by growing counters. The zero value has seen none. It is safe for
// concurrent use.
type Shortage struct {
	mu                   sync.Mutex // rank 90: guards all below
	evicted, refused     uint64     // at the last Note
	evictedNs, refusedNs int64      // time of the last growth, 0 for never
}

// Note takes the counters and returns their growth since the last call.
func (s *Shortage) Note(nowNs int64, evicted, refused uint64) (moreEvicted, moreRefused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moreEvicted, moreRefused = evicted-s.evicted, refused-s.refused
	s.evicted, s.refused = evicted, refused
	if moreEvicted > 0 {
		s.evictedNs = nowNs
	}
	if moreRefused > 0 {
		s.refusedNs = nowNs
	}
	return moreEvicted, moreRefused
}

func (s *Shortage) Recent(nowNs int64) (evicted, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(ns int64) bool { return ns != 0 && nowNs-ns < int64(recent) }
	return is(s.evictedNs), is(s.refusedNs)
}

// ErrSize has Redis's words.
var ErrSize = errors.New("argument must be a memory value")

// Parse reads a size as Redis does: bytes, or with a unit in any case: 1k is 1000 bytes, 1kb 1024, and so
// with m and g.
func Parse(text string) (bytes int64, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, ErrSize
	}
	units := map[string]int64{"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1000 * 1000, "mb": 1 << 20, "g": 1000 * 1000 * 1000, "gb": 1 << 30}
	unit, ok := units[strings.ToLower(text[digits:])]
	if !ok || n > (1<<63-1)/unit {
		return 0, ErrSize
	}
	return n * unit, nil
}

// Part is a size, or a percentage of a maximum.
type Part struct {
	text    string // as set
	bytes   int64
	percent int64 // 0 if bytes count
}

// ErrPart has Redis's words.
var ErrPart = errors.New("argument must be a memory or percent value, such as 64mb or 25%")

// ParsePart reads a size, as Parse does, or a percentage.
func ParsePart(text string) (Part, error) {
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || percent > 100 {
			return Part{}, ErrPart
		}
		return Part{text: text, percent: int64(percent)}, nil
	}
	bytes, err := Parse(text)
	if err != nil {
		return Part{}, ErrPart
	}
	return Part{text: text, bytes: bytes}, nil
}

func (p *Part) String() string { return p.text }

func (p *Part) Set(text string) (err error) {
	*p, err = ParsePart(text)
	return err
}

// SetAbove0 is Set for a part that must not be 0.
func (p *Part) SetAbove0(text string) error {
	part, err := ParsePart(text)
	if err == nil && part.bytes == 0 && part.percent == 0 {
		err = ErrPart
	}
	if err == nil {
		*p = part
	}
	return err
}

// Of returns the part of a maximum in bytes; 0 for no limit.
func (p *Part) Of(maxBytes int64) int64 {
	if p.percent == 0 {
		return p.bytes
	}
	return maxBytes/100*p.percent + maxBytes%100*p.percent/100
}

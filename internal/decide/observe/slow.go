package observe

import (
	"container/list"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"cellserver/internal/wire/catalog"
)

// Slowness holds the thresholds of SLOWLOG and LATENCY.
type Slowness struct {
	minNs         atomic.Int64 // the lower of both
	slowlogFromUs atomic.Int64 // negative for never
	latencyFromMs atomic.Int64 // 0 for never
}

// Slowlog returns slowlog-log-slower-than in microseconds, negative for never.
func (l *Slowness) Slowlog() (us int64) { return l.slowlogFromUs.Load() }

func (l *Slowness) SetSlowlog(us int64) {
	l.slowlogFromUs.Store(us)
	l.update()
}

// Latency returns latency-monitor-threshold in milliseconds, 0 for never.
func (l *Slowness) Latency() (ms int64) { return l.latencyFromMs.Load() }

func (l *Slowness) SetLatency(ms int64) {
	l.latencyFromMs.Store(ms)
	l.update()
}

func (l *Slowness) update() {
	minNs := int64(math.MaxInt64)
	if us := l.slowlogFromUs.Load(); us >= 0 && us <= math.MaxInt64/1000 {
		minNs = us * 1000
	}
	if ms := l.latencyFromMs.Load(); ms > 0 && ms <= math.MaxInt64/1_000_000 {
		minNs = min(minNs, ms*1_000_000)
	}
	l.minNs.Store(minNs)
}

func (l *Slowness) Any() bool { return l.minNs.Load() < math.MaxInt64 }

// IsSlow reports whether a duration is recorded.
func (l *Slowness) IsSlow(ns int64) bool { return ns >= l.minNs.Load() }

// Caller identifies a call's client.
type Caller interface {
	Addr() string
	Name() string
}

func (r *Records) SlowCall(c *catalog.Command, args []string, by Caller, nowNs, ns int64) {
	if from := r.Slowness.Slowlog(); from >= 0 && ns/1000 >= from {
		r.Slowlog.add(SlowEntry{UnixSec: nowNs / 1e9, DurationUs: ns / 1000, Args: args, Addr: by.Addr(), Name: by.Name()})
	}
	event := "command"
	if c.Flags&catalog.FlagFast != 0 {
		event = "fast-command"
	}
	r.Latency(event, nowNs, ns)
}

// Latency records an event above the threshold.
func (r *Records) Latency(event string, nowNs, ns int64) {
	if from := r.Slowness.Latency(); from > 0 && ns/1_000_000 >= from {
		r.Latencies.add(event, LatencySample{UnixSec: nowNs / 1e9, Ms: ns / 1_000_000})
	}
}

// Slowlog keeps recent slow calls. It is safe for concurrent use.
type Slowlog struct {
	maxLen atomic.Int64

	mu      sync.Mutex // rank 90: guards all below
	entries list.List  // of SlowEntry, newest first
	lastID  int64
}

// SlowEntry is a slow call or batch.
type SlowEntry struct {
	ID, UnixSec, DurationUs int64
	Args                    []string
	Addr, Name              string // of the client
}

// MaxSlowlogLen bounds slowlog-max-len: an entry may be 6 KiB.
const MaxSlowlogLen = 1 << 14

func (l *Slowlog) add(e SlowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.lastID
	l.lastID++
	l.entries.PushFront(e)
	for int64(l.entries.Len()) > l.maxLen.Load() {
		l.entries.Remove(l.entries.Back())
	}
}

// Latest returns up to n entries, newest first; a negative n returns all.
func (l *Slowlog) Latest(n int64) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []SlowEntry
	for at := l.entries.Front(); at != nil && int64(len(found)) != n; at = at.Next() {
		found = append(found, at.Value.(SlowEntry))
	}
	return found
}

func (l *Slowlog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

// Reset drops the entries; numbering goes on.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

func (l *Slowlog) MaxLen() int64 { return l.maxLen.Load() }

// SetMaxLen changes slowlog-max-len; the next entry drops the excess.
func (l *Slowlog) SetMaxLen(n int64) { l.maxLen.Store(n) }

// Latencies are LATENCY's records of durations above latency-monitor-threshold. It is safe for concurrent
// use.
type Latencies struct {
	mu     sync.Mutex // rank 90: guards events
	events map[string]*LatencyEvent
}

// latencySamples bounds an event's samples, as in Redis.
const latencySamples = 160

type LatencyEvent struct {
	Samples []LatencySample // oldest first
	WorstMs int64           // ever
}

// LatencySample is the longest duration in a second.
type LatencySample struct{ UnixSec, Ms int64 }

// SweepEvent is the sweep of expired keys, for which no command waits.
const SweepEvent = "sweep"

// add adds a sample and keeps the longest of each second.
func (l *Latencies) add(event string, sample LatencySample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.events[event]
	if v == nil {
		v = &LatencyEvent{}
		if l.events == nil {
			l.events = map[string]*LatencyEvent{}
		}
		l.events[event] = v
	}
	v.WorstMs = max(v.WorstMs, sample.Ms)
	if n := len(v.Samples); n > 0 && v.Samples[n-1].UnixSec == sample.UnixSec {
		v.Samples[n-1].Ms = max(v.Samples[n-1].Ms, sample.Ms)
		return
	}
	if len(v.Samples) == latencySamples {
		v.Samples = slices.Delete(v.Samples, 0, 1)
	}
	v.Samples = append(v.Samples, sample)
}

func (l *Latencies) All() map[string]LatencyEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]LatencyEvent, len(l.events))
	for name, v := range l.events {
		all[name] = LatencyEvent{slices.Clone(v.Samples), v.WorstMs}
	}
	return all
}

// Reset forgets the named events, or all, and returns their number.
func (l *Latencies) Reset(names []string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.events)
	if len(names) == 0 {
		clear(l.events)
	}
	for _, name := range names {
		delete(l.events, name)
	}
	return before - len(l.events)
}

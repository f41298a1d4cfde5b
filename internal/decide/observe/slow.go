package observe

import (
	"math"
	"sync/atomic"

	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Slowness is how long something must take for SLOWLOG or LATENCY to record it.
type Slowness struct {
	leastNs       atomic.Int64 // the lower of the two
	slowlogFromUs atomic.Int64 // negative: never
	latencyFromMs atomic.Int64 // 0: never
}

// Slowlog is slowlog-log-slower-than: microseconds, negative for never.
func (l *Slowness) Slowlog() (us int64) { return l.slowlogFromUs.Load() }

// SetSlowlog changes slowlog-log-slower-than.
func (l *Slowness) SetSlowlog(us int64) {
	l.slowlogFromUs.Store(us)
	l.update()
}

// Latency is latency-monitor-threshold: milliseconds, 0 for never.
func (l *Slowness) Latency() (ms int64) { return l.latencyFromMs.Load() }

// SetLatency changes latency-monitor-threshold.
func (l *Slowness) SetLatency(ms int64) {
	l.latencyFromMs.Store(ms)
	l.update()
}

func (l *Slowness) update() {
	least := int64(math.MaxInt64)
	if us := l.slowlogFromUs.Load(); us >= 0 && us <= math.MaxInt64/1000 {
		least = us * 1000
	}
	if ms := l.latencyFromMs.Load(); ms > 0 && ms <= math.MaxInt64/1_000_000 {
		least = min(least, ms*1_000_000)
	}
	l.leastNs.Store(least)
}

// Any reports whether anything can be slow.
func (l *Slowness) Any() bool { return l.leastNs.Load() < math.MaxInt64 }

// IsSlow reports whether what took so long is to be recorded.
func (l *Slowness) IsSlow(ns int64) bool { return ns >= l.leastNs.Load() }

// Caller is who made a call.
type Caller interface {
	Addr() string
	Name() string
}

// Slow records a call if it was slow, without passwords; else it is one comparison.
func (r *Records) Slow(c *catalog.Command, args [][]byte, by Caller, nowNs, ns int64) {
	if r.Slowness.IsSlow(ns) {
		r.SlowCall(c, ShortArgs(Redacted(c, args)), by, nowNs, ns)
	}
}

// SlowCall records a call that IsSlow.
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

// SlowBatch records a batch of calls that IsSlow, as one entry.
func (r *Records) SlowBatch(c *catalog.Command, batch []store.Request, by Caller, nowNs, ns int64) {
	r.SlowCall(c, batchArgs(c, batch), by, nowNs, ns)
}

// Latency records how long an event took, if that reaches the threshold.
func (r *Records) Latency(event string, nowNs, ns int64) {
	if from := r.Slowness.Latency(); from > 0 && ns/1_000_000 >= from {
		r.Latencies.add(event, LatencySample{UnixSec: nowNs / 1e9, Ms: ns / 1_000_000})
	}
}

// Package history keeps the last minutes of a server, whether or not anybody looks at its page: samples, and
// the calls of the hottest keys and of the named limits. Its types are safe for concurrent use.
package history

import (
	"cmp"
	"sync"
	"time"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Bounds of a History:
const (
	Interval  = 2 * time.Second
	Span      = 15 * time.Minute
	MaxPoints = int(Span / Interval)
)

// Sample is the server's state at one time. Counters count since the start; a maximum of 0 is unlimited.
type Sample struct {
	Allowed, Limited            uint64 // the sums of Outcomes
	Outcomes                    [limiter.Kinds]store.Outcomes
	Connections, MaxConnections int
	Keys                        int
	MemoryBytes, MaxMemoryBytes uint64
	TableBytes, MaxTableBytes   uint64
	ClientBytes, MaxClientBytes uint64
	Evicted, Refused            uint64 // limiters
	Values                      store.ValueStats
	Errors                      uint64 // replies
	OwnErrors                   uint64 // of these, with codes of the server's own but NOSCRIPT
	LastError                   observe.LastError
	ConnectionsRefused          uint64
	NewKeysRefused              uint64 // by --max-new-keys-per-second
	ScriptsEnded                uint64 // at a limit
	LogLinesLost                uint64
	Panics                      uint64 // that ended a connection
	WrongPasswords              uint64
	FilesRefused                bool // the last file of limits, or of rules for Envoy
	HandoversTimedOut           uint64
	ChangesRefused              uint64 // times that it began, for lack of replicas
	StoreRequests               uint64 // to the store on other machines
	ByPolicy, Prefiltered       uint64 // requests decided without the store on other machines
	RoundTripNs                 int64  // of the slowest store server
	WrittenBytes                uint64 // to the disk
	SyncNs                      int64  // duration of the last sync
}

// Point is a sample beside the one before.
type Point struct {
	*Sample
	before *Sample

	AtNs    int64
	sec     float64   // between the two
	Latency Latencies // of the calls between the two
}

// Counter is a counter of a sample.
type Counter func(s *Sample) uint64

// Allowed and Limited are the counters of decisions.
func Allowed(s *Sample) uint64 { return s.Allowed }
func Limited(s *Sample) uint64 { return s.Limited }

// Since returns a counter's difference between the two samples.
func (p *Point) Since(c Counter) uint64 { return gained(c(p.Sample), c(p.before)) }

// PerSec returns a counter's rate between the two samples.
func (p *Point) PerSec(c Counter) float64 { return float64(p.Since(c)) / p.sec }

// gained returns a counter's difference to an earlier reading. One that was reset began at 0.
func gained(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// LimitedShare returns the limited share of decisions; ok is false without decisions.
func (p *Point) LimitedShare() (share float64, ok bool) {
	limited := float64(p.Since(Limited))
	all := float64(p.Since(Allowed)) + limited
	return limited / max(all, 1), all > 0
}

// History keeps the samples of its Span.
type History struct {
	mu        sync.Mutex // rank 90: guards all below
	ring      [MaxPoints]Point
	added     int // points since the start
	lastNs    int64
	last      *Sample // nil before the first
	durations histogram.Durations
	lastErr   observe.LastError
	erredNs   int64 // time of the last sample with new error replies; 0 for never
}

// Add adds a sample, and reports whether the traces are due. The first makes no point, as there is nothing to
// compare it with.
func (h *History) Add(nowNs int64, s Sample, durations histogram.Durations) (tracesDue bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastErr, s.LastError = s.LastError, observe.LastError{} // whose texts no point has to keep
	if sec := float64(nowNs-h.lastNs) / 1e9; h.last != nil && sec > 0 {
		h.ring[h.added%MaxPoints] = Point{&s, h.last, nowNs, sec, percentiles(durations.Since(h.durations))}
		h.added++
	}
	if s.Errors != cmp.Or(h.last, &Sample{}).Errors {
		h.erredNs = nowNs
	}
	h.lastNs, h.last, h.durations = nowNs, &s, durations
	return h.added%traceEvery == 0
}

// LastError returns the last error reply and its time.
func (h *History) LastError() (e observe.LastError, atNs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastErr, h.erredNs
}

// Points returns the points, oldest first, the newest sample, and the number of points since the start.
func (h *History) Points() (points []Point, last *Sample, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// After a suspension of the process, samples are too far apart and the ring reaches back too far.
	afterNs := h.lastNs - int64(Span)
	for i := max(0, h.added-MaxPoints); i < h.added; i++ {
		if p := &h.ring[i%MaxPoints]; p.AtNs > afterNs {
			points = append(points, *p)
		}
	}
	return points, cmp.Or(h.last, &Sample{}), h.added
}

// Latencies holds percentiles in nanoseconds; OK is false without calls.
type Latencies struct {
	P50, P99, P999 float64
	OK             bool
}

func percentiles(of histogram.Durations) Latencies {
	at := func(share float64) float64 { return float64(of.Quantile(share)) }
	return Latencies{P50: at(0.5), P99: at(0.99), P999: at(0.999), OK: of.Count > 0}
}

// Minute sums up a minute of the clock: the mean of decisions, the maximum of everything else.
type Minute struct {
	AtNs              int64
	Connections, Keys int
	MemoryBytes       uint64
	Latency           Latencies

	points, allowed, limited float64 // sums
}

// Minutes returns the minutes, newest first. The current one is left out unless it is the only one, so that
// the table changes once a minute.
func Minutes(points []Point) []Minute {
	var all []Minute
	for i := len(points) - 1; i >= 0; i-- {
		p := &points[i]
		if atNs := p.AtNs - p.AtNs%int64(time.Minute); len(all) == 0 || all[len(all)-1].AtNs != atNs {
			all = append(all, Minute{AtNs: atNs})
		}
		all[len(all)-1].add(p)
	}
	if len(all) > 1 {
		return all[1:]
	}
	return all
}

func (m *Minute) add(p *Point) {
	m.points++
	m.allowed += p.PerSec(Allowed)
	m.limited += p.PerSec(Limited)
	m.Connections = max(m.Connections, p.Connections)
	m.Keys = max(m.Keys, p.Keys)
	m.MemoryBytes = max(m.MemoryBytes, p.MemoryBytes)
	m.Latency.P50 = max(m.Latency.P50, p.Latency.P50)
	m.Latency.P99 = max(m.Latency.P99, p.Latency.P99)
	m.Latency.OK = m.Latency.OK || p.Latency.OK
}

// Allowed returns the allowed decisions per second.
func (m *Minute) Allowed() float64 { return m.allowed / m.points }

// Limited returns the limited decisions per second.
func (m *Minute) Limited() float64 { return m.limited / m.points }

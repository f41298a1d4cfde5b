package dashboard

import (
	"math"
	"sync"
	"time"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/observe"
)

const (
	sampleInterval = 2 * time.Second
	historySpan    = 15 * time.Minute
	historyCount   = int(historySpan / sampleInterval)
)

// point holds gauges of a sample, and counters per second since the sample before.
type point struct {
	atNs                        int64
	allowed, limited            float64
	connections, keys           int
	memoryBytes, maxMemoryBytes uint64
	tableBytes                  uint64
	evicted, refused, errors    float64
	byPolicy, prefiltered       float64
	roundTripNs                 int64
	writtenBytes                float64
	syncNs                      int64
	latency                     latencies
	storeRequests               uint64 // this and tally since the point before
	tally                       tally
}

// limitedShare returns the limited share of decisions; ok is false without decisions.
func (p *point) limitedShare() (share float64, ok bool) {
	all := p.allowed + p.limited
	return p.limited / max(all, math.SmallestNonzeroFloat64), all > 0
}

type history struct {
	mu        sync.Mutex // rank 90: guards all below
	ring      [historyCount]point
	added     int // points since the start
	lastNs    int64
	last      Sample
	durations histogram.Snapshot
	erredNs   int64 // time of the last sample with new error replies; 0 for never
}

// add adds a sample. The first makes no point, as there is nothing to compare it with.
func (h *history) add(nowNs int64, s Sample, durations histogram.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sec := float64(nowNs-h.lastNs) / 1e9; h.lastNs != 0 && sec > 0 {
		last := &h.last
		perSec := func(now, before uint64) float64 { return float64(now-before) / sec }
		h.ring[h.added%historyCount] = point{
			atNs:           nowNs,
			allowed:        perSec(s.Allowed, last.Allowed),
			limited:        perSec(s.Limited, last.Limited),
			connections:    s.Connections,
			keys:           s.Keys,
			memoryBytes:    s.MemoryBytes,
			maxMemoryBytes: s.MaxMemoryBytes,
			tableBytes:     s.TableBytes,
			evicted:        perSec(s.Evicted, last.Evicted),
			refused:        perSec(s.Refused, last.Refused),
			errors:         perSec(s.Errors, last.Errors),
			byPolicy:       perSec(s.ByPolicy, last.ByPolicy),
			prefiltered:    perSec(s.Prefiltered, last.Prefiltered),
			roundTripNs:    s.RoundTripNs,
			writtenBytes:   perSec(s.WrittenBytes, last.WrittenBytes),
			syncNs:         s.SyncNs,
			latency:        percentiles(durations.Since(h.durations)),
			storeRequests:  gained(s.StoreRequests, last.StoreRequests),
			tally:          newTally(&s, last),
		}
		h.added++
	}
	if s.Errors != h.last.Errors {
		h.erredNs = nowNs
	}
	h.lastNs, h.last, h.durations = nowNs, s, durations
}

// lastError returns the last error reply and its time.
func (h *history) lastError() (e observe.LastError, atNs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.LastError, h.erredNs
}

// points returns the points, oldest first, the newest sample, and the number of points since the start.
func (h *history) points() (points []point, last Sample, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// After a suspension of the process, samples are too far apart and the ring reaches back too far.
	afterNs := h.lastNs - int64(historySpan)
	for i := max(0, h.added-historyCount); i < h.added; i++ {
		if p := &h.ring[i%historyCount]; p.atNs > afterNs {
			points = append(points, *p)
		}
	}
	return points, h.last, h.added
}

// latencies holds percentiles in nanoseconds; ok is false without calls.
type latencies struct {
	p50, p99, p999 float64
	ok             bool
}

func percentiles(of histogram.Snapshot) latencies {
	at := func(share float64) float64 { return float64(of.Quantile(share)) }
	return latencies{p50: at(0.5), p99: at(0.99), p999: at(0.999), ok: of.Count > 0}
}

// tally counts what alarms have counters for.
type tally [alarms]uint64

// newTally returns the alarms' counts of a sample since the one before.
func newTally(s, before *Sample) (n tally) {
	for a, r := range severityRows() {
		if r.count != nil {
			n[a] = gained(r.count(s), r.count(before))
		}
	}
	return n
}

// gained returns a counter's difference to an earlier reading. One that was reset began at 0.
func gained(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// within sums up an alarm's counter over its time before the newest point.
func (v *view) within(a alarm) (n uint64) {
	for _, p := range v.pointsWithin(a.row().within) {
		n += p.tally[a]
	}
	return n
}

// pointsWithin returns the points within a time before the newest one, and it.
func (v *view) pointsWithin(span time.Duration) []point {
	from := len(v.points)
	for from > 0 && v.points[from-1].atNs > v.now().atNs-int64(span) {
		from--
	}
	return v.points[from:]
}

// rate returns an alarm's counter per second within its time, or since the first point, but at least a minute.
func (v *view) rate(a alarm) float64 {
	if len(v.points) == 0 {
		return 0
	}
	known := time.Duration(v.now().atNs-v.points[0].atNs) + sampleInterval
	return float64(v.within(a)) / max(time.Minute, min(a.row().within, known)).Seconds()
}

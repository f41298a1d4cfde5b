package dashboard

import (
	"cmp"
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

// point is a sample beside the one before.
type point struct {
	*Sample
	before  *Sample
	atNs    int64
	sec     float64   // between the two
	latency latencies // of the calls between the two
}

// counter is a counter of a sample.
type counter func(s *Sample) uint64

func allowed(s *Sample) uint64 { return s.Allowed }
func limited(s *Sample) uint64 { return s.Limited }

// since returns a counter's difference between the two samples.
func (p *point) since(c counter) uint64 { return gained(c(p.Sample), c(p.before)) }

// perSec returns a counter's rate between the two samples.
func (p *point) perSec(c counter) float64 { return float64(p.since(c)) / p.sec }

// gained returns a counter's difference to an earlier reading. One that was reset began at 0.
func gained(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// limitedShare returns the limited share of decisions; ok is false without decisions.
func (p *point) limitedShare() (share float64, ok bool) {
	limited := float64(p.since(limited))
	all := float64(p.since(allowed)) + limited
	return limited / max(all, 1), all > 0
}

type history struct {
	mu        sync.Mutex // rank 90: guards all below
	ring      [historyCount]point
	added     int // points since the start
	lastNs    int64
	last      *Sample // nil before the first
	durations histogram.Snapshot
	lastError observe.LastError
	erredNs   int64 // time of the last sample with new error replies; 0 for never
}

// add adds a sample. The first makes no point, as there is nothing to compare it with.
func (h *history) add(nowNs int64, s Sample, durations histogram.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastError, s.LastError = s.LastError, observe.LastError{} // whose texts no point has to keep
	if sec := float64(nowNs-h.lastNs) / 1e9; h.last != nil && sec > 0 {
		h.ring[h.added%historyCount] = point{&s, h.last, nowNs, sec, percentiles(durations.Since(h.durations))}
		h.added++
	}
	if s.Errors != cmp.Or(h.last, &Sample{}).Errors {
		h.erredNs = nowNs
	}
	h.lastNs, h.last, h.durations = nowNs, &s, durations
}

// lastErrorAt returns the last error reply and its time.
func (h *history) lastErrorAt() (e observe.LastError, atNs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastError, h.erredNs
}

// points returns the points, oldest first, the newest sample, and the number of points since the start.
func (h *history) points() (points []point, last *Sample, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// After a suspension of the process, samples are too far apart and the ring reaches back too far.
	afterNs := h.lastNs - int64(historySpan)
	for i := max(0, h.added-historyCount); i < h.added; i++ {
		if p := &h.ring[i%historyCount]; p.atNs > afterNs {
			points = append(points, *p)
		}
	}
	return points, cmp.Or(h.last, &Sample{}), h.added
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

// within sums up an alarm's counter over its time before the newest point.
func (v *view) within(a alarm) (n uint64) {
	for _, p := range v.pointsWithin(a.row().within) {
		n += p.since(a.row().count)
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

// rate returns an alarm's counter per second within its time, or since the first point, but a minute at least.
func (v *view) rate(a alarm) float64 {
	if len(v.points) == 0 {
		return 0
	}
	known := time.Duration(v.now().atNs-v.points[0].atNs) + sampleInterval
	return float64(v.within(a)) / max(time.Minute, min(a.row().within, known)).Seconds()
}

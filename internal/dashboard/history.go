package dashboard

import (
	"math"
	"sync"
	"time"

	"cellserver/internal/histogram"
)

const (
	sampleInterval = 2 * time.Second
	historySpan    = 15 * time.Minute
	historyCount   = int(historySpan / sampleInterval)
)

// point is what happened between one sample and the next.
type point struct {
	atNs              int64
	allowed, limited  float64 // per second
	connections, keys int
	memoryBytes       uint64
	maxMemoryBytes    uint64
	evicted, refused  float64 // per second
	byPolicy          float64 // per second
	latency           latencies
}

// limitedShare is the share of the decisions that were limited, and false where there was none.
func (p *point) limitedShare() (share float64, ok bool) {
	all := p.allowed + p.limited
	return p.limited / max(all, math.SmallestNonzeroFloat64), all > 0
}

// history holds the points of the last 15 minutes.
type history struct {
	mu        sync.Mutex // guards all below
	ring      [historyCount]point
	added     int // points since the start
	lastNs    int64
	last      Sample
	durations histogram.Snapshot
}

// add adds a sample. The first one makes no point: there is nothing to compare it with.
func (h *history) add(nowNs int64, s Sample, durations histogram.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sec := float64(nowNs-h.lastNs) / 1e9; h.lastNs != 0 && sec > 0 {
		h.ring[h.added%historyCount] = point{
			atNs:        nowNs,
			allowed:     float64(s.Allowed-h.last.Allowed) / sec,
			limited:     float64(s.Limited-h.last.Limited) / sec,
			connections: s.Connections,
			keys:        s.Keys,
			memoryBytes: s.MemoryBytes,
			latency:     percentiles(durations.Since(h.durations)),

			maxMemoryBytes: s.MaxMemoryBytes,
			evicted:        float64(s.Evicted-h.last.Evicted) / sec,
			refused:        float64(s.Refused-h.last.Refused) / sec,
			byPolicy:       float64(s.ByPolicy-h.last.ByPolicy) / sec,
		}
		h.added++
	}
	h.lastNs, h.last, h.durations = nowNs, s, durations
}

// points returns the points, oldest first, and how many there were since the start.
func (h *history) points() (points []point, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// After the process was suspended, samples are further apart than they should be and the ring reaches back too far.
	afterNs := h.lastNs - int64(historySpan)
	for i := max(0, h.added-historyCount); i < h.added; i++ {
		if p := &h.ring[i%historyCount]; p.atNs > afterNs {
			points = append(points, *p)
		}
	}
	return points, h.added
}

package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/observe"
	"cellserver/internal/edge/dashboard/words"
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
	mishaps                     tally // since the point before
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
	durations histogram.Durations
	erredNs   int64 // time of the last sample with new error replies; 0 for never
}

// add adds a sample. The first makes no point, as there is nothing to compare it with.
func (h *history) add(nowNs int64, s Sample, durations histogram.Durations) {
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
			mishaps:        s.tally().since(last.tally()),
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

func percentiles(of histogram.Durations) latencies {
	at := func(share float64) float64 { return float64(of.Quantile(share)) }
	return latencies{p50: at(0.5), p99: at(0.99), p999: at(0.999), ok: of.Count > 0}
}

func (v *view) historySection(minutes g.Node) g.Node {
	return v.section("history", v.t.HistoryHeading,
		el("div", class("scripted"), ranges(v.t), el("div", class("wall"), el("div", class("charts"), g.Map(v.charts(), v.figure)))),
		el("details", el("summary", text(v.t.TableSummary)), el("p", text(v.t.TableCaption)), scrolling(v.t.TableScroll, el("table",
			headings(v.t.Minute, v.t.Allowed, v.t.Limited, v.t.P50, v.t.P99, v.t.Connections, v.t.Keys, v.t.Memory),
			el("tbody", id("minutes"), flag("data-live"), minutes),
		))),
	)
}

// ranges returns the choice of the charts' time range.
func ranges(t *words.Texts) g.Node {
	return el("fieldset", id("ranges"), el("legend", class("unseen"), text(t.Range)),
		g.Map([]time.Duration{time.Minute, 5 * time.Minute, historySpan}, func(d time.Duration) g.Node {
			return el("label",
				el("input", attr("type", "radio"), attr("name", "range"), attr("value", strconv.FormatInt(d.Milliseconds(), 10)), g.If(d == historySpan, flag("checked"))),
				text(fmt.Sprintf(t.Minutes, int(d.Minutes()))))
		}),
		el("button", id("whole"), attr("type", "button"), flag("hidden"), text(t.WholeRange)),
	)
}

// figure returns a chart without its curves, which the script draws.
func (v *view) figure(c chart) g.Node {
	classes := "chart"
	if c.ID == "decisions" {
		classes += " wide"
	}
	var legend g.Group
	var values []string
	for _, l := range c.Lines {
		value := v.newestOf(l.Column, c.Kind)
		name := l.name
		if name != "" {
			name += " "
		}
		legend = append(legend, el("li", attr("data-col", l.Column), el("span", class("swatch "+l.Ink)), text(name), el("b", text(value))))
		values = append(values, name+value)
	}
	return el("figure", id("chart-"+c.ID), class(classes),
		el("figcaption", el("h3", text(c.title)), el("ul", class("legend"), legend)),
		el("div", class("plot"), attr("tabindex", "0"), attr("role", "img"), attr("aria-label", c.title+v.t.Colon+strings.Join(values, v.t.Comma))),
	)
}

// newestOf formats the newest value of a column.
func (v *view) newestOf(name string, q words.Quantity) string {
	if now := v.now(); now != nil {
		for _, c := range v.page.columns() {
			if c.name != name {
				continue
			}
			if n, ok := c.value(now); ok {
				return q.OfColumn(n)
			}
		}
	}
	return "–"
}

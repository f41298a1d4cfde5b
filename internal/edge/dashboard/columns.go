package dashboard

import (
	"math"
	"strconv"
)

// column is a figure of every point as the page's script gets it: a whole number in the column's unit, and false where there
// is none. Rates are in thousandths per second and shares in thousandths, durations in nanoseconds, memory in bytes.
type column struct {
	name  string
	value func(p *point) (int64, bool)
}

// columns returns what the script gets of each point: no more than this server has.
func (p *Page) columns() []column {
	all := []column{
		{"t", func(p *point) (int64, bool) { return p.atNs / 1e6, true }},
		{"allowed", rateOf(func(p *point) float64 { return p.allowed })},
		{"limited", rateOf(func(p *point) float64 { return p.limited })},
		{"share", func(p *point) (int64, bool) {
			share, ok := p.limitedShare()
			return thousandths(share), ok
		}},
		{"p50", latencyOf(func(l *latencies) float64 { return l.p50 })},
		{"p99", latencyOf(func(l *latencies) float64 { return l.p99 })},
		{"p999", latencyOf(func(l *latencies) float64 { return l.p999 })},
		{"connections", func(p *point) (int64, bool) { return int64(p.connections), true }},
		{"keys", func(p *point) (int64, bool) { return int64(p.keys), true }},
		{"memory", func(p *point) (int64, bool) { return int64(p.memoryBytes), true }},
		{"maxmemory", func(p *point) (int64, bool) { return int64(p.maxMemoryBytes), p.maxMemoryBytes > 0 }},
		{"keymemory", func(p *point) (int64, bool) { return int64(p.tableBytes), p.tableBytes > 0 }},
		{"evicted", rateOf(func(p *point) float64 { return p.evicted })},
		{"refused", rateOf(func(p *point) float64 { return p.refused })},
		{"errors", rateOf(func(p *point) float64 { return p.errors })},
	}
	if p.source.Remote != nil {
		all = append(all,
			column{"roundtrip", func(p *point) (int64, bool) { return p.roundTripNs, p.roundTripNs > 0 }},
			column{"prefiltered", rateOf(func(p *point) float64 { return p.prefiltered })},
			column{"bypolicy", rateOf(func(p *point) float64 { return p.byPolicy })})
	}
	if p.source.Persistence != nil {
		all = append(all,
			column{"written", func(p *point) (int64, bool) { return int64(p.writtenBytes), true }},
			column{"sync", func(p *point) (int64, bool) { return p.syncNs, p.syncNs > 0 }})
	}
	return all
}

func thousandths(v float64) int64 { return int64(math.Round(1000 * v)) }

func rateOf(perSec func(p *point) float64) func(p *point) (int64, bool) {
	return func(p *point) (int64, bool) { return thousandths(perSec(p)), true }
}

func latencyOf(ns func(l *latencies) float64) func(p *point) (int64, bool) {
	return func(p *point) (int64, bool) { return int64(ns(&p.latency)), p.latency.ok }
}

// appendDeltas appends a column as a JSON array: each number is the difference to the last one before it, the first is whole,
// and null stands where there is none.
func (c *column) appendDeltas(b []byte, points []point) []byte {
	b = append(b, '[')
	var last int64
	for i := range points {
		if i > 0 {
			b = append(b, ',')
		}
		v, ok := c.value(&points[i])
		if !ok {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendInt(b, v-last, 10)
		last = v
	}
	return append(b, ']')
}

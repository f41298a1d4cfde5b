package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
)

// chart is drawn by the script. Least is the least upper end of its value axis: per second, in nanoseconds,
// in bytes, or a count. Max names the column of the maximum, if there is one.
type chart struct {
	ID    string         `json:"id"`
	Kind  words.Quantity `json:"kind"`
	Log   bool           `json:"log"`
	Lines []line         `json:"lines"`
	Least int            `json:"least"`
	Max   string         `json:"max,omitempty"`

	title string
}

// line draws a column. Inks differ in dashes, too, for those who cannot tell the colours apart.
type line struct {
	Column string `json:"col"`
	Ink    string `json:"ink"` // first, second, third or limited

	name string // empty for a single line
}

// charts returns the page's charts, the widest first.
func (v *view) charts() []chart {
	t, source := v.t, &v.page.source
	all := []chart{
		{
			ID: "decisions", Kind: words.Rate, Least: 5, title: t.DecisionsPerSec,
			Lines: []line{{"allowed", "first", t.Allowed}, {"limited", "limited", t.Limited}},
		},
		{
			ID: "latency", Kind: words.DurationNs, Least: 1000, Log: true, title: t.Latency,
			Lines: []line{{"p50", "first", t.P50}, {"p99", "second", t.P99}, {"p999", "third", t.P999}},
		},
		gauge("connections", words.Count, 5, t.Connections),
		gauge("keys", words.Count, 5, t.Keys),
		{ID: "memory", Kind: words.Bytes, Least: 1 << 20, Max: "maxmemory", title: t.Memory, Lines: []line{{Column: "memory", Ink: "first"}}},
	}
	if v.last.MaxMemoryBytes > 0 {
		all = append(all, chart{
			ID: "evictions", Kind: words.Rate, Least: 5, title: t.NotStored,
			Lines: []line{{"evicted", "first", t.EvictedKeys}, {"refused", "second", t.RefusedKeys}},
		})
	}
	if source.Remote != nil {
		all = append(all, gauge("roundtrip", words.DurationNs, 1000, t.RoundTrip), chart{
			ID: "decidedhere", Kind: words.Rate, Least: 5, title: t.DecidedHere,
			Lines: []line{{"prefiltered", "first", t.FromKnown}, {"bypolicy", "second", t.FromPolicy}},
		})
	}
	if source.Persistence != nil {
		all = append(all, gauge("written", words.Bytes, 1<<10, t.WrittenPerSec), gauge("sync", words.DurationNs, 1000, t.LastSync))
	}
	return all
}

// gauge returns a chart of the column named id.
func gauge(id string, q words.Quantity, least int, title string) chart {
	return chart{ID: id, Least: least, title: title, Kind: q, Lines: []line{{Column: id, Ink: "first"}}}
}

// column is a figure of each point for the script, as an integer; ok is false if there is none. Rates and
// shares are in thousandths, durations in nanoseconds, sizes in bytes.
type column struct {
	name  string
	value func(p *point) (n int64, ok bool)
}

// columns returns the columns that this server has.
func (p *Page) columns() []column {
	all := []column{
		{"t", func(p *point) (int64, bool) { return p.atNs / 1e6, true }},
		{"allowed", rateOf(allowed)},
		{"limited", rateOf(limited)},
		{"share", func(p *point) (int64, bool) {
			share, ok := p.limitedShare()
			return thousandths(share), ok
		}},
		{"p50", latencyOf(func(l *latencies) float64 { return l.p50 })},
		{"p99", latencyOf(func(l *latencies) float64 { return l.p99 })},
		{"p999", latencyOf(func(l *latencies) float64 { return l.p999 })},
		{"connections", func(p *point) (int64, bool) { return int64(p.Connections), true }},
		{"keys", func(p *point) (int64, bool) { return int64(p.Keys), true }},
		{"memory", func(p *point) (int64, bool) { return int64(p.MemoryBytes), true }},
		{"maxmemory", func(p *point) (int64, bool) { return int64(p.MaxMemoryBytes), p.MaxMemoryBytes > 0 }},
		{"keymemory", func(p *point) (int64, bool) { return int64(p.TableBytes), p.TableBytes > 0 }},
		{"evicted", rateOf(func(s *Sample) uint64 { return s.Evicted })},
		{"refused", rateOf(func(s *Sample) uint64 { return s.Refused })},
		{"errors", rateOf(func(s *Sample) uint64 { return s.Errors })},
	}
	if p.source.Remote != nil {
		all = append(all,
			column{"roundtrip", func(p *point) (int64, bool) { return p.RoundTripNs, p.RoundTripNs > 0 }},
			column{"prefiltered", rateOf(func(s *Sample) uint64 { return s.Prefiltered })},
			column{"bypolicy", rateOf(func(s *Sample) uint64 { return s.ByPolicy })})
	}
	if p.source.Persistence != nil {
		all = append(all,
			column{"written", func(p *point) (int64, bool) {
				return int64(p.perSec(func(s *Sample) uint64 { return s.WrittenBytes })), true
			}},
			column{"sync", func(p *point) (int64, bool) { return p.SyncNs, p.SyncNs > 0 }})
	}
	return all
}

func thousandths(v float64) int64 { return int64(math.Round(1000 * v)) }

func rateOf(c counter) func(p *point) (int64, bool) {
	return func(p *point) (int64, bool) { return thousandths(p.perSec(c)), true }
}

func latencyOf(ns func(l *latencies) float64) func(p *point) (int64, bool) {
	return func(p *point) (int64, bool) { return int64(ns(&p.latency)), p.latency.ok }
}

// appendDeltas appends a column as a JSON array: the first number, then differences to the last one before,
// and null for none.
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

package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/history"
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
	value func(p *history.Point) (n int64, ok bool)
}

// columns returns the columns that this server has.
func (p *Page) columns() []column {
	all := []column{
		{"t", func(p *history.Point) (int64, bool) { return p.AtNs / 1e6, true }},
		{"allowed", rateOf(history.Allowed)},
		{"limited", rateOf(history.Limited)},
		{"share", func(p *history.Point) (int64, bool) {
			share, ok := p.LimitedShare()
			return thousandths(share), ok
		}},
		{"p50", latencyOf(func(l *history.Latencies) float64 { return l.P50 })},
		{"p99", latencyOf(func(l *history.Latencies) float64 { return l.P99 })},
		{"p999", latencyOf(func(l *history.Latencies) float64 { return l.P999 })},
		{"connections", func(p *history.Point) (int64, bool) { return int64(p.Connections), true }},
		{"keys", func(p *history.Point) (int64, bool) { return int64(p.Keys), true }},
		{"memory", func(p *history.Point) (int64, bool) { return int64(p.MemoryBytes), true }},
		{"maxmemory", func(p *history.Point) (int64, bool) { return int64(p.MaxMemoryBytes), p.MaxMemoryBytes > 0 }},
		{"keymemory", func(p *history.Point) (int64, bool) { return int64(p.TableBytes), p.TableBytes > 0 }},
		{"evicted", rateOf(func(s *history.Sample) uint64 { return s.Evicted })},
		{"refused", rateOf(func(s *history.Sample) uint64 { return s.Refused })},
		{"errors", rateOf(func(s *history.Sample) uint64 { return s.Errors })},
	}
	if p.source.Remote != nil {
		all = append(all,
			column{"roundtrip", func(p *history.Point) (int64, bool) { return p.RoundTripNs, p.RoundTripNs > 0 }},
			column{"prefiltered", rateOf(func(s *history.Sample) uint64 { return s.Prefiltered })},
			column{"bypolicy", rateOf(func(s *history.Sample) uint64 { return s.ByPolicy })})
	}
	if p.source.Persistence != nil {
		all = append(all,
			column{"written", func(p *history.Point) (int64, bool) {
				return int64(p.PerSec(func(s *history.Sample) uint64 { return s.WrittenBytes })), true
			}},
			column{"sync", func(p *history.Point) (int64, bool) { return p.SyncNs, p.SyncNs > 0 }})
	}
	return all
}

func thousandths(v float64) int64 { return int64(math.Round(1000 * v)) }

func rateOf(c history.Counter) func(p *history.Point) (int64, bool) {
	return func(p *history.Point) (int64, bool) { return thousandths(p.PerSec(c)), true }
}

func latencyOf(ns func(l *history.Latencies) float64) func(p *history.Point) (int64, bool) {
	return func(p *history.Point) (int64, bool) { return int64(ns(&p.Latency)), p.Latency.OK }
}

// appendDeltas appends a column as a JSON array: the first number, then differences to the last one before,
// and null for none.
func (c *column) appendDeltas(b []byte, points []history.Point) []byte {
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
		g.Map([]time.Duration{time.Minute, 5 * time.Minute, history.Span}, func(d time.Duration) g.Node {
			return el("label",
				el("input", attr("type", "radio"), attr("name", "range"), attr("value", strconv.FormatInt(d.Milliseconds(), 10)), g.If(d == history.Span, flag("checked"))),
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

// courseSVG draws a course of up to points points, the newest at the right: all calls, and those limited.
func courseSVG(c history.Course, classes string, points int, inside ...g.Node) g.Node {
	const high = 24
	most := float64(max(c.Most(), math.SmallestNonzeroFloat32))
	path := func(of func(r history.Rates) float32) g.Node {
		var d strings.Builder
		for i, r := range c {
			x, y := points-len(c)+i, high-int(math.Round(float64(of(r))/most*(high-1)))
			if i == 0 {
				d.WriteString("M" + strconv.Itoa(x) + " " + strconv.Itoa(high))
			}
			d.WriteString("L" + strconv.Itoa(x) + " " + strconv.Itoa(y))
		}
		if len(c) > 0 {
			d.WriteString("V" + strconv.Itoa(high) + "Z")
		}
		return attr("d", d.String())
	}
	return el("svg", class(classes), attr("viewBox", fmt.Sprintf("0 0 %d %d", points-1, high)), attr("preserveAspectRatio", "none"), g.Group(inside),
		el("path", class("calls"), path(func(r history.Rates) float32 { return r.Calls })),
		el("path", class("limited"), path(func(r history.Rates) float32 { return r.Limited })))
}

// coursePart shows the last minutes of a key or a limit, or why there are none.
func coursePart(t *words.Texts, c history.Course, none string) g.Node {
	if len(c) == 0 {
		return el("p", class("soft"), text(none))
	}
	calls, limited, _ := c.Sums()
	span := words.Wait(uint64(len(c)) * uint64(history.TraceStep))
	if lasts := time.Duration(len(c)) * history.TraceStep; lasts >= time.Minute {
		span = t.Span(lasts)
	}
	told := fmt.Sprintf(t.CourseText, span, words.About(calls), words.About(limited))
	return g.Group{
		el("p", text(told)),
		courseSVG(c, "course", history.TracePoints, attr("role", "img"), attr("aria-label", told)),
		el("p", class("axis"), el("span", text(fmt.Sprintf(t.Ago, t.Span(history.Span)))), el("span", text(t.Now))),
	}
}

package dashboard

import (
	"html/template"
	"strings"

	"gonum.org/v1/plot/vg"

	"cellserver/internal/topkeys"
)

// Lines differ in dashes as well, so that colour alone does not distinguish them.
const (
	inkFirst  ink = "first"
	inkSecond ink = "second"
	inkThird  ink = "third"
)

// namedChart is a chart with its texts, in any language.
type namedChart struct {
	id    string
	title func(t *texts) string
	names func(t *texts) []string // of the series
	chart
}

func ratesChart() namedChart {
	return namedChart{
		id:    "decisions",
		title: func(t *texts) string { return t.DecisionsPerSec },
		names: func(t *texts) []string { return []string{t.Allowed, t.Limited} },
		chart: chart{quantity: rate, least: 5, series: []series{
			{ink: inkFirst, area: true, value: func(p *point) (float64, bool) { return p.allowed, true }},
			{ink: inkSecond, dash: dashes(), value: func(p *point) (float64, bool) { return p.limited, true }},
		}},
	}
}

func latencyChart() namedChart {
	return namedChart{
		id:    "latency",
		title: func(t *texts) string { return t.Latency },
		names: func(t *texts) []string { return []string{t.P50, t.P99, t.P999} },
		chart: chart{quantity: durationNs, least: 1000, logarithmic: true, series: []series{
			{ink: inkFirst, value: func(p *point) (float64, bool) { return p.latency.p50, p.latency.ok }},
			{ink: inkSecond, dash: dashes(), value: func(p *point) (float64, bool) { return p.latency.p99, p.latency.ok }},
			{ink: inkThird, dash: dots(), value: func(p *point) (float64, bool) { return p.latency.p999, p.latency.ok }},
		}},
	}
}

// gauge returns a chart of one line.
func gauge(id string, q quantity, least float64, name func(t *texts) string, value func(p *point) float64) namedChart {
	return namedChart{
		id:    id,
		title: name,
		names: func(t *texts) []string { return []string{name(t)} },
		chart: chart{quantity: q, least: least, series: []series{
			{ink: inkFirst, area: true, value: func(p *point) (float64, bool) { return value(p), true }},
		}},
	}
}

func dashes() []vg.Length { return []vg.Length{6, 3} }
func dots() []vg.Length   { return []vg.Length{1.5, 3} }

// charts returns the page's charts.
func pageCharts() []namedChart {
	return []namedChart{
		ratesChart(),
		latencyChart(),
		gauge("connections", count, 5, func(t *texts) string { return t.Connections },
			func(p *point) float64 { return float64(p.connections) }),
		gauge("keys", count, 5, func(t *texts) string { return t.Keys },
			func(p *point) float64 { return float64(p.keys) }),
		gauge("memory", byteCount, 1<<20, func(t *texts) string { return t.Memory },
			func(p *point) float64 { return float64(p.memoryBytes) }),
	}
}

// renderedSample is what the page shows of the newest sample. It is rendered once, however many browsers load it.
type renderedSample struct {
	added              int // points since the start
	points             []point
	charts             []template.HTML
	requested, limited []topkeys.Entry
}

// render returns the newest sample, rendered.
func (p *Page) render() (renderedSample, error) {
	points, added := p.history.points()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rendered.charts != nil && p.rendered.added == added {
		return p.rendered, nil
	}
	r := renderedSample{
		added: added, points: points,
		requested: p.source.Top(topkeys.Requested, topKeyCount), limited: p.source.Top(topkeys.Limited, topKeyCount),
	}
	for _, c := range pageCharts() {
		svg, err := c.draw(points)
		if err != nil {
			return renderedSample{}, err
		}
		r.charts = append(r.charts, svg)
	}
	p.rendered = r
	return r, nil
}

const topKeyCount = 10

// chartView is a chart for the template.
type chartView struct {
	ID, Title, Label string
	Lines            []lineView
	SVG              template.HTML
}

// lineView is a line of a chart's legend, with its newest value.
type lineView struct {
	Class, Name, Value string
}

func newChartViews(t *texts, d renderedSample) []chartView {
	var views []chartView
	for i, c := range pageCharts() {
		v := chartView{ID: c.id, Title: c.title(t), SVG: d.charts[i]}
		var values []string
		for j, name := range c.names(t) {
			line := lineView{Class: string(c.series[j].ink), Name: name, Value: "–"}
			if n := len(d.points); n > 0 {
				if value, ok := c.series[j].value(&d.points[n-1]); ok {
					line.Value = c.quantity.text(value)
				}
			}
			v.Lines = append(v.Lines, line)
			values = append(values, name+" "+line.Value)
		}
		v.Label = c.title(t) + t.Colon + strings.Join(values, t.Comma)
		views = append(views, v)
	}
	return views
}

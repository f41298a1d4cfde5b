package dashboard

import (
	"fmt"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (v *view) historySection(minutes g.Node) g.Node {
	return v.section("history", v.t.HistoryHeading,
		h.Div(h.Class("scripted"), v.ranges(), h.Div(h.Class("charts"), g.Map(v.charts(), v.figure))),
		h.Details(h.Summary(g.Text(v.t.TableSummary)), scrolling(v.t.TableScroll, h.Table(
			h.Caption(g.Text(v.t.TableCaption)),
			headings(v.t.Minute, v.t.Allowed, v.t.Limited, v.t.P50, v.t.P99, v.t.Connections, v.t.Keys, v.t.Memory),
			h.TBody(h.ID("minutes"), g.Attr("data-live"), minutes),
		))),
	)
}

// ranges returns the choice of how far back the charts reach.
func (v *view) ranges() g.Node {
	return h.FieldSet(h.ID("ranges"), h.Legend(h.Class("unseen"), g.Text(v.t.Range)),
		g.Map([]time.Duration{time.Minute, 5 * time.Minute, historySpan}, func(d time.Duration) g.Node {
			return h.Label(
				h.Input(h.Type("radio"), h.Name("range"), h.Value(fmt.Sprint(d.Milliseconds())), g.If(d == historySpan, h.Checked())),
				g.Textf(v.t.Minutes, int(d.Minutes())))
		}),
		h.Button(h.ID("whole"), h.Type("button"), g.Attr("hidden"), g.Text(v.t.WholeRange)),
	)
}

// figure returns a chart without its curves, which the script draws.
func (v *view) figure(c chart) g.Node {
	class := "chart"
	if c.ID == "decisions" {
		class += " wide"
	}
	var legend g.Group
	var values []string
	for _, l := range c.Lines {
		value := v.newestOf(l.Column, c.Kind)
		name := l.name
		if name != "" {
			name += " "
		}
		legend = append(legend, h.Li(h.Data("col", l.Column), h.Span(h.Class("swatch "+l.Ink)), g.Text(name), h.B(g.Text(value))))
		values = append(values, name+value)
	}
	return h.Figure(h.ID("chart-"+c.ID), h.Class(class),
		h.FigCaption(h.H3(g.Text(c.title)), h.Ul(h.Class("legend"), legend)),
		h.Div(h.Class("plot"), h.TabIndex("0"), h.Role("img"), h.Aria("label", c.title+v.t.Colon+strings.Join(values, v.t.Comma))),
	)
}

// newestOf writes the newest value of a column.
func (v *view) newestOf(name string, q quantity) string {
	if now := v.now(); now != nil {
		for _, c := range v.page.columns() {
			if c.name != name {
				continue
			}
			if n, ok := c.value(now); ok {
				return q.ofColumn(n)
			}
		}
	}
	return "–"
}

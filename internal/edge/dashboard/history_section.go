package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
)

func (v *view) historySection(minutes g.Node) g.Node {
	return v.section("history", v.t.HistoryHeading,
		el("div", class("scripted"), ranges(v.t), el("div", class("charts"), g.Map(v.charts(), v.figure))),
		el("details", el("summary", text(v.t.TableSummary)), scrolling(v.t.TableScroll, el("table",
			el("caption", text(v.t.TableCaption)),
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
func (v *view) newestOf(name string, q figures.Quantity) string {
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

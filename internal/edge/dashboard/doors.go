package dashboard

import (
	"maps"
	"slices"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/edge/door"
)

// doorsPart shows the requests of the protocols beside RESP since the start.
func (v *view) doorsPart() g.Node {
	doors, t := v.page.source.Doors, v.t
	if len(doors) == 0 {
		return nil
	}
	var rows g.Group
	for _, name := range slices.Sorted(maps.Keys(doors)) {
		counts := doors[name].Counts()
		row := g.Group{attr("data-k", name), el("th", attr("scope", "row"), text(name))}
		for _, outcome := range door.Outcomes() {
			row = append(row, cells(words.Grouped(int64(counts.Of(outcome)))))
		}
		p99 := "–"
		if counts.Durations.Count > 0 {
			p99 = words.DurationNs.Text(float64(counts.Durations.Quantile(0.99)))
		}
		rows = append(rows, el("tr", append(row, cells(p99))))
	}
	return v.section("doors", t.DoorsHeading, scrolling(t.DoorsScroll, el("table",
		headings(t.Door, t.Allowed, t.Limited, t.DoorRefused, t.DoorFailed, t.LatencyP99), el("tbody", rows))))
}

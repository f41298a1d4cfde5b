package dashboard

import "cellserver/internal/edge/dashboard/figures"

// chart is a chart that the page's script draws. Least is what its value axis reaches at least: per second, in nanoseconds,
// in bytes, or a count; 1 is all of a share. Max names the column with the maximum of what is drawn, if it has one.
type chart struct {
	ID    string           `json:"id"`
	Kind  figures.Quantity `json:"kind"`
	Log   bool             `json:"log"`
	Lines []line           `json:"lines"`
	Least int              `json:"least"`
	Max   string           `json:"max,omitempty"`

	title string
}

// line is a column as a line. Inks differ in dashes as well, so that colour alone does not distinguish them.
type line struct {
	Column string `json:"col"`
	Ink    string `json:"ink"` // first, second or third

	name string // empty for the only one
}

// charts returns the page's charts, the first of which is the widest.
func (v *view) charts() []chart {
	t, source := v.t, &v.page.source
	all := []chart{
		{
			ID: "decisions", Kind: figures.Rate, Least: 5, title: t.DecisionsPerSec,
			Lines: []line{{"allowed", "first", t.Allowed}, {"limited", "second", t.Limited}},
		},
		{
			ID: "latency", Kind: figures.DurationNs, Least: 1000, Log: true, title: t.Latency,
			Lines: []line{{"p50", "first", t.P50}, {"p99", "second", t.P99}, {"p999", "third", t.P999}},
		},
		gauge("connections", figures.Count, 5, t.Connections),
		gauge("keys", figures.Count, 5, t.Keys),
		{ID: "memory", Kind: figures.Bytes, Least: 1 << 20, Max: "maxmemory", title: t.Memory, Lines: []line{{Column: "memory", Ink: "first"}}},
	}
	if v.last.MaxMemoryBytes > 0 {
		all = append(all, chart{
			ID: "room", Kind: figures.Rate, Least: 5, title: t.WithoutRoom,
			Lines: []line{{"evicted", "first", t.EvictedKeys}, {"refused", "second", t.RefusedKeys}},
		})
	}
	if source.Remote != nil {
		all = append(all, gauge("roundtrip", figures.DurationNs, 1000, t.RoundTrip), chart{
			ID: "decidedhere", Kind: figures.Rate, Least: 5, title: t.DecidedHere,
			Lines: []line{{"prefiltered", "first", t.FromKnown}, {"bypolicy", "second", t.FromPolicy}},
		})
	}
	if source.Persistence != nil {
		all = append(all, gauge("written", figures.Bytes, 1<<10, t.WrittenPerSec), gauge("sync", figures.DurationNs, 1000, t.LastSync))
	}
	return all
}

// gauge returns a chart of the column that has its name.
func gauge(id string, q figures.Quantity, least int, title string) chart {
	return chart{ID: id, Least: least, title: title, Kind: q, Lines: []line{{Column: id, Ink: "first"}}}
}

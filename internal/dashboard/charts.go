package dashboard

// chart is a chart that the page's script draws. Least is what its value axis reaches at least: per second, in nanoseconds,
// in bytes, or a count; 1 is all of a share. Max names the column with the maximum of what is drawn, if it has one.
type chart struct {
	ID    string   `json:"id"`
	Kind  quantity `json:"kind"`
	Log   bool     `json:"log"`
	Lines []line   `json:"lines"`
	Least int      `json:"least"`
	Max   string   `json:"max,omitempty"`

	title string
}

// line is a column as a line. Inks differ in dashes as well, so that colour alone does not distinguish them.
type line struct {
	Column string `json:"col"`
	Ink    string `json:"ink"` // first, second or third

	name string // empty for the only one
}

// charts returns the page's charts, the first of which is the widest.
func (p *Page) charts(t *texts) []chart {
	return []chart{
		{
			ID: "decisions", Least: 5, title: t.DecisionsPerSec, Kind: rate,
			Lines: []line{{"allowed", "first", t.Allowed}, {"limited", "second", t.Limited}},
		},
		{
			ID: "latency", Least: 1000, Log: true, title: t.Latency, Kind: durationNs,
			Lines: []line{{"p50", "first", t.P50}, {"p99", "second", t.P99}, {"p999", "third", t.P999}},
		},
		gauge("connections", count, 5, t.Connections),
		gauge("keys", count, 5, t.Keys),
		{ID: "memory", Least: 1 << 20, Max: "maxmemory", title: t.Memory, Kind: byteCount, Lines: []line{{Column: "memory", Ink: "first"}}},
	}
}

// gauge returns a chart of the column that has its name.
func gauge(id string, q quantity, least int, title string) chart {
	return chart{ID: id, Least: least, title: title, Kind: q, Lines: []line{{Column: id, Ink: "first"}}}
}

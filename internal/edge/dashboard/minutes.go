package dashboard

import (
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
)

// minute is a minute of the clock: the mean of its decisions, and the maximum of everything else.
type minute struct {
	atNs, points     int64
	allowed, limited float64
	most             point
}

// minutes returns the minutes, newest first. The one that is under way is left out, so that the table changes once a minute,
// unless it is the only one.
func minutes(points []point) []minute {
	var all []minute
	for i := len(points) - 1; i >= 0; i-- {
		p := &points[i]
		if atNs := p.atNs - p.atNs%int64(time.Minute); len(all) == 0 || all[len(all)-1].atNs != atNs {
			all = append(all, minute{atNs: atNs})
		}
		all[len(all)-1].add(p)
	}
	if len(all) > 1 {
		return all[1:]
	}
	return all
}

func (m *minute) add(p *point) {
	m.points++
	m.allowed += p.allowed
	m.limited += p.limited
	m.most.connections = max(m.most.connections, p.connections)
	m.most.keys = max(m.most.keys, p.keys)
	m.most.memoryBytes = max(m.most.memoryBytes, p.memoryBytes)
	m.most.latency.p50 = max(m.most.latency.p50, p.latency.p50)
	m.most.latency.p99 = max(m.most.latency.p99, p.latency.p99)
	m.most.latency.ok = m.most.latency.ok || p.latency.ok
}

func (v *view) minutesPart() g.Node {
	return g.Map(v.minutes, minute.row)
}

func (m minute) row() g.Node {
	at := time.Unix(0, m.atNs).UTC()
	p50, p99 := "–", "–"
	if m.most.latency.ok {
		p50, p99 = figures.DurationNs.Text(m.most.latency.p50), figures.DurationNs.Text(m.most.latency.p99)
	}
	return el("tr",
		attr("data-k", at.Format("15:04")),
		el("th", attr("scope", "row"), el("time", attr("datetime", at.Format("2006-01-02T15:04Z")), text(at.Format("15:04")))),
		cells(figures.Rate.Text(m.allowed/float64(m.points)), figures.Rate.Text(m.limited/float64(m.points)), p50, p99,
			figures.Count.Text(float64(m.most.connections)), figures.Count.Text(float64(m.most.keys)), figures.Bytes.Text(float64(m.most.memoryBytes))),
	)
}

package dashboard

import (
	"strconv"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/resp"
)

// minute sums up a minute of the clock: the mean of decisions, the maximum of everything else.
type minute struct {
	atNs, points     int64
	allowed, limited float64
	most             point
}

// minutes returns the minutes, newest first. The current one is left out unless it is the only one, so that
// the table changes once a minute.
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

func (v *view) topPart() g.Node {
	if v.last.Allowed+v.last.Limited == 0 && len(v.requested) == 0 && !v.isReplica() {
		return v.firstCall()
	}
	return g.Group{v.ranking(v.t.TopRequested, v.requested), v.ranking(v.t.TopLimited, v.limited)}
}

// firstCall shows a command to try, while there was no call. A replica would refuse it.
func (v *view) firstCall() g.Node {
	call := v.page.facts().Client + " cl.throttle laoqian:reply 15 30 60 1"
	return el("div", class("first"), el("p", text(v.t.FirstCall)), el("p", el("code", text(call)), copyButton(v.t, call)))
}

func (v *view) ranking(title string, keys []topkeys.Entry) g.Node {
	if len(keys) == 0 {
		return el("div", el("h3", text(title)), el("p", text(v.t.TopNone)))
	}
	return el("div", el("h3", text(title)), el("table",
		headings(v.t.Key, v.t.PerSec, v.t.Share),
		el("tbody", g.Map(keys, v.hotKey)),
	))
}

func (v *view) hotKey(k topkeys.Entry) g.Node {
	quoted, db := resp.Quote([]byte(k.Name)), strconv.Itoa(int(k.DB))
	name := keyName(quoted)
	if !k.Cut {
		name = g.Group{el("a", attr("href", v.lookLink(k.Name, db, k.Terms)), name), copyButton(v.t, quoted)}
	}
	return el("tr",
		attr("data-k", db+":"+quoted),
		el("th", attr("scope", "row"), name, g.If(k.DB != 0, el("small", text(" db "+db)))),
		cells(perSecond(k), figures.Percent(k.Share)),
	)
}

// perSecond formats a key's rate and, unless it is exact, its error.
func perSecond(k topkeys.Entry) string {
	switch {
	case !k.IsRecent:
		return "–"
	case k.RecentError == 0:
		return figures.Estimate(k.Recent)
	}
	return figures.Estimate(k.Recent) + " ± " + figures.Estimate(k.RecentError)
}

package dashboard

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// minute sums up a minute of the clock: the mean of decisions, the maximum of everything else.
type minute struct {
	atNs, points      int64
	allowed, limited  float64
	connections, keys int
	memoryBytes       uint64
	latency           latencies
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
	m.allowed += p.perSec(allowed)
	m.limited += p.perSec(limited)
	m.connections = max(m.connections, p.Connections)
	m.keys = max(m.keys, p.Keys)
	m.memoryBytes = max(m.memoryBytes, p.MemoryBytes)
	m.latency.p50 = max(m.latency.p50, p.latency.p50)
	m.latency.p99 = max(m.latency.p99, p.latency.p99)
	m.latency.ok = m.latency.ok || p.latency.ok
}

func (v *view) minutesPart() g.Node {
	return g.Map(v.minutes, minute.row)
}

func (m minute) row() g.Node {
	at := time.Unix(0, m.atNs).UTC()
	p50, p99 := "–", "–"
	if m.latency.ok {
		p50, p99 = words.DurationNs.Text(m.latency.p50), words.DurationNs.Text(m.latency.p99)
	}
	return el("tr",
		attr("data-k", at.Format("15:04")),
		el("th", attr("scope", "row"), el("time", attr("datetime", at.Format("2006-01-02T15:04Z")), text(at.Format("15:04")))),
		cells(words.Rate.Text(m.allowed/float64(m.points)), words.Rate.Text(m.limited/float64(m.points)), p50, p99,
			words.Count.Text(float64(m.connections)), words.Count.Text(float64(m.keys)), words.Bytes.Text(float64(m.memoryBytes))),
	)
}

// topPart is one table of the hottest keys, by all calls or by those limited.
func (v *view) topPart() g.Node {
	t := v.t
	if v.last.Allowed+v.last.Limited == 0 && len(v.hot) == 0 && !v.isReplica() {
		return v.firstCall()
	}
	if len(v.hot) == 0 {
		return el("p", text(t.TopNone))
	}
	keys, byLimited := v.hot, v.query.Get("top") == "limited"
	if byLimited {
		keys = slices.SortedStableFunc(slices.Values(keys), func(a, b hotKey) int { return cmp.Compare(b.limited.Share, a.limited.Share) })
	}
	keys = keys[:min(len(keys), topKeyCount)]
	most := 0.0
	for i := range keys {
		most = max(most, keys[i].Share)
	}
	return el("table", el("thead", el("tr",
		el("th", attr("scope", "col"), text(t.Key)),
		v.sortable("top", "", t.PerSec, !byLimited), v.sortable("top", "limited", t.LimitedRate, byLimited),
		el("th", attr("scope", "col"), class("wide"), text(t.LimitHit)),
		el("th", attr("scope", "col"), class("minor"), text(t.Share)), el("th", attr("scope", "col"), class("bar"), el("span", class("unseen"), text(t.ShareBar))))),
		el("tbody", g.Map(keys, func(k hotKey) g.Node { return v.hotRow(&k, most) })))
}

// sortable returns a column heading that sorts its table.
func (v *view) sortable(param, value, name string, isSorted bool) g.Node {
	return el("th", attr("scope", "col"), g.If(isSorted, attr("aria-sort", "descending")),
		el("a", class("in"), attr("href", v.withChoice(param, value)), text(name)))
}

// firstCall shows a command to try, while there was no call. A replica would refuse it.
func (v *view) firstCall() g.Node {
	call := v.page.source.Facts().Client + " cl.throttle laoqian:reply 15 30 60 1"
	return el("div", class("first"), el("p", text(v.t.FirstCall)), el("p", el("code", text(call)), copyButton(v.t, call)))
}

// hotKey is a key of one of the two rankings or of both.
type hotKey struct {
	topkeys.Entry               // of all calls; without a share if only the limited ones are known
	limited       topkeys.Entry // of the limited calls; zero if they are not known
}

// hotKeys joins the rankings: the most requested keys, then the others of the most limited.
func hotKeys(requested, limited []topkeys.Entry) (all []hotKey) {
	places := make(map[traceKey]int, len(requested))
	for i, e := range requested {
		places[traceKey{e.DB, e.Name}] = i
		all = append(all, hotKey{Entry: e})
	}
	for _, e := range limited {
		if i, ok := places[traceKey{e.DB, e.Name}]; ok {
			all[i].limited = e
			continue
		}
		all = append(all, hotKey{e, e})
		all[len(all)-1].Share = 0
	}
	return all
}

func (k *hotKey) id() string { return strconv.Itoa(int(k.DB)) + ":" + resp.Quote([]byte(k.Name)) }

// rateCells returns the rates of all calls and of those limited. The error is second from right to left, too.
func (k *hotKey) rateCells() g.Node {
	limited := "0"
	if k.limited != (topkeys.Entry{}) {
		limited = perSecond(&k.limited)
	}
	return g.Group{el("td", el("bdi", text(perSecond(&k.Entry)))), el("td", el("bdi", text(limited)))}
}

// limitedPart returns the limited part of the key's calls of the last minutes, from 0 to 1.
func (k *hotKey) limitedPart() float64 {
	if k.CallsPerSecond == 0 {
		return 0
	}
	return min(1, k.limited.CallsPerSecond/k.CallsPerSecond)
}

func (v *view) hotRow(k *hotKey, most float64) g.Node {
	share := "–"
	if k.Share > 0 {
		share = words.Percent(k.Share)
	}
	return el("tr", attr("data-k", k.id()), el("th", attr("scope", "row"), v.hotName(k)),
		k.rateCells(), el("td", class("wide"), v.limitHit(k)), el("td", class("minor"), text(share)),
		el("td", class("bar"), bar(k.Share/max(most, math.SmallestNonzeroFloat64), k.limitedPart())))
}

// bar draws a share with its limited part.
func bar(share, limited float64) g.Node {
	wide := func(part float64) string { return strconv.Itoa(int(math.Round(100 * part))) }
	return el("svg", class("share"), attr("viewBox", "0 0 100 8"), attr("preserveAspectRatio", "none"), attr("aria-hidden", "true"),
		el("rect", class("calls"), attr("width", wide(share)), attr("height", "8")),
		g.If(limited > 0, el("rect", class("limited"), attr("width", wide(share*limited)), attr("height", "8"))))
}

// hotName links to a key.
func (v *view) hotName(k *hotKey) g.Node {
	quoted := resp.Quote([]byte(k.Name))
	name := keyName(quoted)
	if !k.Cut {
		name = g.Group{el("a", class("in"), attr("href", v.keyLink(k.Name, k.DB, k.Terms)), name), copyButton(v.t, quoted)}
	}
	return g.Group{name, g.If(k.DB != 0, el("small", text(" db "+strconv.Itoa(int(k.DB)))))}
}

// limitHit tells the limit of a key's last call.
func (v *view) limitHit(k *hotKey) g.Node {
	if k.Terms.Kind == limiter.Named {
		if name, _, ok := strings.Cut(k.Name, ":"); ok && v.hasLimit(name) {
			return v.limitLink(name)
		}
	}
	if v.asker.TermsText(k.Terms) == "" {
		return text("–")
	}
	r := v.asker.RuleOf(k.Terms)
	return text(callText(v.t, k.Terms.Kind, &r))
}

func (v *view) hasLimit(name string) bool {
	_, found := slices.BinarySearchFunc(v.limits, name, func(r limitRow, name string) int { return cmp.Compare(r.Name, name) })
	return found
}

// perSecond formats a key's rate and, unless it is exact, its error.
func perSecond(k *topkeys.Entry) string {
	switch {
	case !k.IsRecent:
		return "–"
	case k.RecentError == 0:
		return words.Estimate(k.Recent)
	}
	return words.Estimate(k.Recent) + " ± " + words.Estimate(k.RecentError)
}

package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

func (v *view) minutesPart() g.Node {
	return g.Map(v.minutes, minuteRow)
}

func minuteRow(m history.Minute) g.Node {
	at := time.Unix(0, m.AtNs).UTC()
	p50, p99 := "–", "–"
	if m.Latency.OK {
		p50, p99 = words.DurationNs.Text(m.Latency.P50), words.DurationNs.Text(m.Latency.P99)
	}
	return el("tr",
		attr("data-k", at.Format("15:04")),
		el("th", attr("scope", "row"), el("time", attr("datetime", at.Format("2006-01-02T15:04Z")), text(at.Format("15:04")))),
		cells(words.Rate.Text(m.Allowed()), words.Rate.Text(m.Limited()), p50, p99,
			words.Count.Text(float64(m.Connections)), words.Count.Text(float64(m.Keys)), words.Bytes.Text(float64(m.MemoryBytes))),
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
		el("th", attr("scope", "col"), class("wide"), text(t.Limit)),
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
	type place struct {
		db   uint16
		name string
	}
	places := make(map[place]int, len(requested))
	for i, e := range requested {
		places[place{e.DB, e.Name}] = i
		all = append(all, hotKey{Entry: e})
	}
	for _, e := range limited {
		if i, ok := places[place{e.DB, e.Name}]; ok {
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

// Bounds of the table of named limits:
const (
	fewLimits     = 10  // beyond, the others are folded
	manyLimits    = 200 // unfolded
	maxFilterSize = 64
	sparkPoints   = int(5 * time.Minute / history.TraceStep)
)

// limitRow is a named limit with its counts and last minutes.
type limitRow struct {
	*namedlimit.Limit
	namedlimit.Counts
	course   history.Course
	now      history.Rates
	lately   history.Rates // calls of the course in all
	override int           // keys and patterns
	spent    spending
}

// limitRows returns the named limits.
func (p *Page) limitRows() []limitRow {
	var rows []limitRow
	spent := p.spent("")
	for _, l := range p.source.Limits() {
		r := limitRow{Limit: l, Counts: l.Counts(), course: p.traces.OfLimit(l.Name, sparkPoints)}
		if n := len(r.course); n > 0 {
			r.now = r.course[n-1]
		}
		calls, limited, near := r.course.Sums()
		r.lately = history.Rates{Calls: float32(calls), Limited: float32(limited), Near: float32(near)}
		keys, patterns := l.NumOverrides()
		r.override, r.spent = keys+patterns, p.spendingOf(l, spent)
		rows = append(rows, r)
	}
	return rows
}

// chosenLimits returns the rows that the address asks for, in its order, and how many it leaves out.
func (v *view) chosenLimits() (rows []limitRow, folded int) {
	filter := strings.ToLower(v.filter())
	for _, r := range v.limits {
		if strings.Contains(strings.ToLower(r.Name), filter) {
			rows = append(rows, r)
		}
	}
	by := func(of func(r *limitRow) float32) func(a, b limitRow) int {
		return func(a, b limitRow) int { return cmp.Or(cmp.Compare(of(&b), of(&a)), cmp.Compare(a.Name, b.Name)) }
	}
	order := by(func(r *limitRow) float32 { return r.lately.Calls })
	switch v.query.Get("sort") {
	case "name":
		order = by(func(*limitRow) float32 { return 0 })
	case "limited":
		order = by(func(r *limitRow) float32 { return r.lately.Limited / max(1, r.lately.Calls) })
	case "near":
		order = by(func(r *limitRow) float32 { return r.lately.Near / max(1, r.lately.Calls) })
	}
	slices.SortFunc(rows, order)
	most := fewLimits
	if v.query.Has("unfold") {
		most = manyLimits
	}
	shown := min(len(rows), most)
	return rows[:shown], len(rows) - shown
}

func (v *view) filter() string {
	filter := strings.TrimSpace(v.query.Get("filter"))
	return filter[:min(len(filter), maxFilterSize)]
}

func (v *view) limitsPart() g.Node {
	if len(v.limits) == 0 {
		return nil
	}
	t := v.t
	rows, folded := v.chosenLimits()
	sorted, spent := v.query.Get("sort"), v.anySpent()
	return v.section("limits", t.LimitsHeading,
		el("p", text(t.LimitsNote)),
		g.If(spent, el("p", text(t.LimitsSpentNote))),
		g.Iff(len(v.limits) > fewLimits, v.limitFilter),
		scrolling(t.LimitsScroll, el("table", el("thead", el("tr",
			v.sortable("sort", "name", t.Limit, false), el("th", attr("scope", "col"), class("words minor"), text(t.Rules)),
			v.sortable("sort", "", t.PerSec, sorted == ""), el("th", attr("scope", "col"), class("minor"), text(t.FiveMinutes)),
			v.sortable("sort", "limited", t.Limited, sorted == "limited"), v.sortable("sort", "near", t.Near, sorted == "near"),
			g.If(spent, g.Group{el("th", attr("scope", "col"), text(t.SpentToday)), el("th", attr("scope", "col"), class("minor"), text(fmt.Sprintf(t.LastDays, store.SpentDays)))}),
			el("th", attr("scope", "col"), class("minor"), text(t.Overrides)))),
			el("tbody", g.Map(rows, func(r limitRow) g.Node { return v.limitLine(&r, spent) })))),
		g.If(len(rows) == 0, el("p", text(t.NoneMatches))),
		v.fold(folded),
	)
}

// limitFilter is the form that filters the limits by a part of their names.
func (v *view) limitFilter() g.Node {
	rest := maps.Clone(v.query)
	rest.Del("filter")
	return el("form", id("filter"), attr("action", "/"), attr("method", "get"), kept(rest),
		el("label", class("unseen"), attr("for", "field-filter"), text(v.t.Filter)),
		el("input", id("field-filter"), attr("name", "filter"), attr("type", "search"), attr("value", v.filter()), attr("placeholder", v.t.Filter),
			attr("autocomplete", "off"), attr("spellcheck", "false")),
		el("button", attr("type", "submit"), text(v.t.Filter)))
}

// fold links to the limits that are left out, or leaves some out again.
func (v *view) fold(left int) g.Node {
	switch {
	case v.query.Has("unfold") && left > 0:
		return el("p", text(fmt.Sprintf(v.t.LimitsMore, left)))
	case v.query.Has("unfold"):
		return el("p", el("a", class("in"), attr("href", v.withChoice("unfold", "")), text(v.t.Fold)))
	case left > 0:
		return el("p", el("a", class("in"), attr("href", v.withChoice("unfold", "1")), text(fmt.Sprintf(v.t.Unfold, left))))
	}
	return nil
}

// limitLine is a limit's row, with what was spent if the table has columns for that.
func (v *view) limitLine(r *limitRow, spent bool) g.Node {
	rules, rate, limited, near, overrides := in(v.t, r.Limit).policyText(&r.Policy), "–", "–", "–", "–"
	if len(r.Rules) > 1 {
		rules = fmt.Sprintf(v.t.RuleCount, words.Grouped(int64(len(r.Rules))))
	}
	if len(r.course) > 0 {
		rate = words.Estimate(float64(r.now.Calls))
	}
	if r.lately.Calls > 0 {
		limited, near = words.Percent(float64(r.lately.Limited/r.lately.Calls)), words.Percent(float64(r.lately.Near/r.lately.Calls))
	}
	if r.override > 0 {
		overrides = words.Grouped(int64(r.override))
	}
	return el("tr", attr("data-k", r.Name), el("th", attr("scope", "row"), v.limitLink(r.Name), g.If(r.Shadow, el("span", class("badge"), text(v.t.Shadow)))),
		el("td", class("words minor"), text(rules)), cells(rate), el("td", class("minor"), courseSVG(r.course, "course", sparkPoints, attr("aria-hidden", "true"))),
		cells(limited, near), g.Iff(spent, func() g.Node { return v.spentCells(r) }), el("td", class("minor"), text(overrides)))
}

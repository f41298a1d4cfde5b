package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
)

// Bounds of the table of named limits:
const (
	fewLimits     = 10  // beyond, the others are folded
	manyLimits    = 200 // unfolded
	maxFilterSize = 64
)

// limitRow is a named limit with its counts and last minutes.
type limitRow struct {
	*namedlimit.Limit
	namedlimit.Counts
	course   course
	now      rates
	lately   rates // calls of the course in all
	override int   // keys and patterns
}

// limitRows returns the named limits.
func (p *Page) limitRows() []limitRow {
	var rows []limitRow
	for _, l := range p.source.Limits() {
		r := limitRow{Limit: l, Counts: l.Counts(), course: p.traces.ofLimit(l.Name, sparkPoints)}
		if n := len(r.course); n > 0 {
			r.now = r.course[n-1]
		}
		calls, limited, near := r.course.sums()
		r.lately = rates{float32(calls), float32(limited), float32(near)}
		keys, patterns := l.NumOverrides()
		r.override = keys + patterns
		rows = append(rows, r)
	}
	return rows
}

// denied returns the limited calls, with those that a shadow would have limited.
func denied(c *namedlimit.Counts) uint64 { return c.Limited + c.ShadowLimited }

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
	order := by(func(r *limitRow) float32 { return r.lately.calls })
	switch v.query.Get("sort") {
	case "name":
		order = by(func(*limitRow) float32 { return 0 })
	case "limited":
		order = by(func(r *limitRow) float32 { return r.lately.limited / max(1, r.lately.calls) })
	case "near":
		order = by(func(r *limitRow) float32 { return r.lately.near / max(1, r.lately.calls) })
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
	sorted := v.query.Get("sort")
	return v.section("limits", t.LimitsHeading,
		el("p", text(t.LimitsNote)),
		g.Iff(len(v.limits) > fewLimits, v.limitFilter),
		scrolling(t.LimitsScroll, el("table", el("thead", el("tr",
			v.sortable("sort", "name", t.Limit, false), el("th", attr("scope", "col"), class("words minor"), text(t.Rules)),
			v.sortable("sort", "", t.PerSec, sorted == ""), el("th", attr("scope", "col"), class("minor"), text(t.FiveMinutes)),
			v.sortable("sort", "limited", t.Limited, sorted == "limited"), v.sortable("sort", "near", t.Near, sorted == "near"),
			el("th", attr("scope", "col"), class("minor"), text(t.Overrides)))),
			el("tbody", g.Map(rows, func(r limitRow) g.Node { return v.limitLine(&r) })))),
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

// limitLine is a limit's row.
func (v *view) limitLine(r *limitRow) g.Node {
	rules, rate, limited, near, overrides := policyText(v.t, &r.Policy), "–", "–", "–", "–"
	if len(r.Rules) > 1 {
		rules = fmt.Sprintf(v.t.RuleCount, words.Grouped(int64(len(r.Rules))))
	}
	if len(r.course) > 0 {
		rate = words.Estimate(float64(r.now.calls))
	}
	if r.lately.calls > 0 {
		limited, near = words.Percent(float64(r.lately.limited/r.lately.calls)), words.Percent(float64(r.lately.near/r.lately.calls))
	}
	if r.override > 0 {
		overrides = words.Grouped(int64(r.override))
	}
	return el("tr", attr("data-k", r.Name), el("th", attr("scope", "row"), v.limitLink(r.Name), g.If(r.Shadow, el("span", class("badge"), text(v.t.Shadow)))),
		el("td", class("words minor"), text(rules)), cells(rate), el("td", class("minor"), r.course.svg("course", sparkPoints, attr("aria-hidden", "true"))),
		cells(limited, near), el("td", class("minor"), text(overrides)))
}

package dashboard

import (
	"cmp"
	"fmt"
	"slices"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/figures"
)

// Bounds of the table of named limits:
const (
	maxLimitRows = 50  // those with the most decisions
	maxRuleRows  = 200 // rules with rows of their own
)

// limitRow is a named limit with its counts.
type limitRow struct {
	*namedlimit.Limit
	namedlimit.Counts
	keys, patterns int                 // with an override
	rules          []namedlimit.Counts // of the rules; nil without rows of their own
}

// limitRows returns the named limits, most decisions first.
func (p *Page) limitRows() []limitRow {
	if p.source.Limits == nil {
		return nil
	}
	var rows []limitRow
	for _, l := range p.source.Limits() {
		rows = append(rows, limitRow{Limit: l, Counts: l.Counts()})
	}
	slices.SortStableFunc(rows, func(a, b limitRow) int { return cmp.Compare(b.all(), a.all()) })
	ruleRows := 0
	for i := range rows[:min(len(rows), maxLimitRows)] {
		r := &rows[i]
		r.keys, r.patterns = r.NumOverrides()
		if n := len(r.Rules); n > 1 && ruleRows+n <= maxRuleRows {
			ruleRows += n
			for rule := range r.Rules {
				r.rules = append(r.rules, r.RuleCounts(rule))
			}
		}
	}
	return rows
}

func (r *limitRow) all() uint64 { return r.Allowed + denied(&r.Counts) }

// denied returns the limited calls, with those that a shadow would have limited.
func denied(c *namedlimit.Counts) uint64 { return c.Limited + c.ShadowLimited }

func (v *view) limitsPart() g.Node {
	rows, more := v.limits, max(0, len(v.limits)-maxLimitRows)
	if len(rows) == 0 {
		return nil
	}
	rows = rows[:len(rows)-more]
	t := limitTable{
		overrides: slices.ContainsFunc(rows, func(r limitRow) bool { return r.keys+r.patterns > 0 }),
		beyond:    slices.ContainsFunc(rows, func(r limitRow) bool { return r.Over > 0 }),
	}
	columns := []string{v.t.Limit, v.t.Rules, v.t.Shadow, v.t.Allowed, v.t.Limited, v.t.Near, v.t.LimitedShare}
	if t.overrides {
		columns = append(columns, v.t.Overrides)
	}
	if t.beyond {
		columns = append(columns, v.t.ChargedBeyond)
	}
	return v.section("limits", v.t.LimitsHeading,
		el("p", text(v.t.LimitsNote)),
		scrolling(v.t.LimitsScroll, el("table", headings(columns...),
			el("tbody", g.Map(rows, func(r limitRow) g.Node { return t.rows(v, &r) })))),
		g.If(more > 0, el("p", text(fmt.Sprintf(v.t.LimitsMore, more)))),
	)
}

// limitTable has the columns that some limit needs.
type limitTable struct{ overrides, beyond bool }

// rows returns a limit's row, and one for each of several rules.
func (t limitTable) rows(v *view, r *limitRow) g.Node {
	rules, shadow, overrides := policyText(v.t, &r.Policy), "–", "–"
	if r.rules != nil {
		rules = fmt.Sprintf(v.t.RuleCount, figures.Grouped(int64(len(r.rules))))
	}
	if r.Shadow {
		shadow = v.t.Yes
	}
	if r.keys+r.patterns > 0 {
		overrides = figures.Grouped(int64(r.keys))
	}
	if r.patterns > 0 {
		overrides = fmt.Sprintf(v.t.WithPatterns, overrides, figures.Grouped(int64(r.patterns)))
	}
	all := g.Group{el("tr", attr("data-k", r.Name), el("th", attr("scope", "row"), text(r.Name)),
		cells(rules, shadow), cells(t.numbers(&r.Counts, overrides)...))}
	for i := range r.rules {
		all = append(all, el("tr", class("rule"), attr("data-k", fmt.Sprintf("%s#%d", r.Name, i)),
			el("th", attr("scope", "row"), attr("colspan", "3"), text(ruleText(v.t, &r.Rules[i]))), cells(t.numbers(&r.rules[i], "")...)))
	}
	return all
}

// numbers returns the cells of counts.
func (t limitTable) numbers(c *namedlimit.Counts, overrides string) []string {
	number := func(n uint64) string { return figures.Count.Text(float64(n)) }
	limited, share := denied(c), "–"
	if all := c.Allowed + limited; all > 0 {
		share = figures.Percent(float64(limited) / float64(all))
	}
	all := []string{number(c.Allowed), number(limited), number(c.Near), share}
	if t.overrides {
		all = append(all, overrides)
	}
	if t.beyond {
		all = append(all, number(c.Over))
	}
	return all
}

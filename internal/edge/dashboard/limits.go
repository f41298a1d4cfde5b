package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/funnel"
)

// maxLimitRows is how many limits the table has: those with the most decisions.
const maxLimitRows = 50

// limitRow is a named limit and how often it has decided.
type limitRow struct {
	*namedlimit.Limit
	allowed, limited uint64
}

// limitRows returns the named limits, those with the most decisions first.
func (p *Page) limitRows() []limitRow {
	if p.source.Limits == nil {
		return nil
	}
	var rows []limitRow
	for _, l := range p.source.Limits() {
		counts := l.Counts()
		rows = append(rows, limitRow{l, counts.Allowed, counts.Limited + counts.ShadowLimited})
	}
	slices.SortStableFunc(rows, func(a, b limitRow) int { return cmp.Compare(b.allowed+b.limited, a.allowed+a.limited) })
	return rows
}

func (v *view) limitsPart() g.Node {
	rows := v.limits
	if len(rows) == 0 {
		return nil
	}
	more := max(0, len(rows)-maxLimitRows)
	return v.section("limits", v.t.LimitsHeading,
		el("p", text(v.t.LimitsNote)),
		scrolling(v.t.LimitsScroll, el("table",
			headings(v.t.Limit, v.t.Windows, v.t.Shadow, v.t.Allowed, v.t.Limited, v.t.LimitedShare),
			el("tbody", g.Map(rows[:len(rows)-more], v.limitRow)),
		)),
		g.If(more > 0, el("p", text(fmt.Sprintf(v.t.LimitsMore, more)))),
	)
}

func (v *view) limitRow(r limitRow) g.Node {
	share, shadow := "–", "–"
	if all := r.allowed + r.limited; all > 0 {
		share = figures.Percent(float64(r.limited) / float64(all))
	}
	if r.Shadow {
		shadow = v.t.Yes
	}
	return el("tr", attr("data-k", r.Name), el("th", attr("scope", "row"), text(r.Name)),
		cells(windowsText(r.Windows, v.page.source.Reading), shadow, figures.Count.Text(float64(r.allowed)), figures.Count.Text(float64(r.limited)), share))
}

// windowsText writes windows as CL.LIMIT SET takes them.
func windowsText(windows []namedlimit.Window, reading funnel.Reading) string {
	texts := make([]string, len(windows))
	for i, w := range windows {
		texts[i] = fmt.Sprintf("%d %d %d", w.MaxBurst(reading), w.Count, w.PeriodSec)
	}
	return strings.Join(texts, " · ")
}

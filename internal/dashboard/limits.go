package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limits"
)

// limitsView is the table of named limits.
type limitsView struct {
	Rows []limitView
	More int // limits that it leaves out
}

type limitView struct {
	Name, Windows           string
	Shadow                  bool
	Allowed, Limited, Share string
}

// maxLimitRows is how many limits the table has: those with the most decisions.
const maxLimitRows = 50

func (p *Page) limits() *limitsView {
	if p.source.Limits == nil {
		return nil
	}
	type row struct {
		limit            *limits.Limit
		allowed, limited uint64
	}
	var rows []row
	for _, l := range p.source.Limits() {
		counts := l.Counts()
		rows = append(rows, row{l, counts.Allowed, counts.Limited + counts.ShadowLimited})
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.allowed+b.limited, a.allowed+a.limited) })
	v := &limitsView{More: max(0, len(rows)-maxLimitRows)}
	for _, r := range rows[:len(rows)-v.More] {
		share := "–"
		if all := r.allowed + r.limited; all > 0 {
			share = percent(float64(r.limited) / float64(all))
		}
		v.Rows = append(v.Rows, limitView{
			Name: r.limit.Name, Windows: windowsText(r.limit.Windows, p.source.Reading), Shadow: r.limit.Shadow,
			Allowed: count.text(float64(r.allowed)), Limited: count.text(float64(r.limited)), Share: share,
		})
	}
	return v
}

// windowsText writes windows as CL.LIMIT SET takes them.
func windowsText(windows []limits.Window, reading funnel.Reading) string {
	texts := make([]string, len(windows))
	for i, w := range windows {
		texts[i] = fmt.Sprintf("%d %d %d", w.MaxBurst(reading), w.Count, w.PeriodSec)
	}
	return strings.Join(texts, " · ")
}

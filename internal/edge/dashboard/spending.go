package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// spending is what was spent under a limit in the last days, today's last. The zero spending is of none.
type spending struct {
	today int32 // number of days since 1970
	days  [store.SpentDays]int64
	any   bool
}

// spent returns what was spent under a limit by day, or under all if it is empty.
func (p *Page) spent(limit string) store.Spends {
	if p.source.Spent == nil {
		return nil
	}
	return p.source.Spent(limit)
}

// spendingOf finds a limit's days among those spent.
func (p *Page) spendingOf(l *namedlimit.Limit, spent store.Spends) (s spending) {
	s.today = l.Today(p.source.Now())
	for i := range s.days {
		day := s.today - int32(store.SpentDays-1-i)
		if units, ok := spent[store.SpentAt{Limit: l.Name, Day: day}]; ok {
			s.days[i], s.any = units, true
		}
	}
	return s
}

func (s *spending) ofToday() int64 { return s.days[store.SpentDays-1] }

// dateOf returns the date of the i-th of the days.
func (s *spending) dateOf(i int) string {
	return namedlimit.DateOf(s.today - int32(store.SpentDays-1-i))
}

// total returns the sum of the days.
func (s *spending) total() (sum int64) {
	for _, n := range s.days {
		sum += n
	}
	return sum
}

// barsSVG draws a bar a day, the newest at the right. A day with any spending has one.
func (s *spending) barsSVG(inside ...g.Node) g.Node {
	const high, wide, step = 24, 3, 4
	most := int64(1)
	for _, n := range s.days {
		most = max(most, n)
	}
	var d strings.Builder
	fmt.Fprintf(&d, "M0 %d", high)
	for _, n := range s.days {
		if n > 0 {
			tall := max(1, int(math.Round(float64(n)/float64(most)*high)))
			fmt.Fprintf(&d, "v%dh%dv%dz", -tall, wide, tall)
		}
		fmt.Fprintf(&d, "m%d 0", step)
	}
	return el("svg", class("course"), attr("viewBox", fmt.Sprintf("0 0 %d %d", step*store.SpentDays, high)), attr("preserveAspectRatio", "none"), g.Group(inside),
		el("path", class("calls"), attr("d", d.String())))
}

// anySpent reports whether anything was spent under a limit, so that the table has columns for it.
func (v *view) anySpent() bool {
	for i := range v.limits {
		if v.limits[i].spent.any {
			return true
		}
	}
	return false
}

// spentCells are those of a limit's row.
func (v *view) spentCells(r *limitRow) g.Node {
	if !r.spent.any {
		return g.Group{el("td", text("–")), el("td", class("minor"), text("–"))}
	}
	return g.Group{el("td", text(in(v.t, r.Limit).number(r.spent.ofToday()))), el("td", class("minor"), r.spent.barsSVG(attr("aria-hidden", "true")))}
}

// spendingPart shows what was spent under a limit by day, and who has spent most.
func (v *view) spendingPart(l *namedlimit.Limit) g.Node {
	s := v.page.spendingOf(l, v.page.spent(l.Name))
	if !s.any && l.HoldCounts().Held == 0 {
		return nil
	}
	return g.Group{v.daysPart(l, &s), v.spendersPart(l)}
}

func (v *view) daysPart(l *namedlimit.Limit, s *spending) g.Node {
	t := in(v.t, l)
	told := fmt.Sprintf(t.SpentText, t.number(s.ofToday()), store.SpentDays, t.number(s.total()))
	var rows g.Group
	for i := len(s.days) - 1; i >= 0; i-- {
		if n := s.days[i]; n != 0 {
			date := s.dateOf(i)
			rows = append(rows, el("tr", attr("data-k", date), el("th", attr("scope", "row"), el("time", text(date))), cells(t.number(n))))
		}
	}
	return el("section", class("minutes"), el("h3", text(t.SpentByDay)),
		el("p", text(told)),
		s.barsSVG(attr("role", "img"), attr("aria-label", told)),
		el("p", class("axis"), el("span", text(s.dateOf(0))), el("span", text(t.Today))),
		el("details", el("summary", text(t.TableSummary)), el("p", class("soft"), text(fmt.Sprintf(t.SpentNote, l.DaysZone()))),
			el("table", headings(t.Day, t.Spent), el("tbody", rows))))
}

// maxSpenders bounds the list of who has spent most.
const maxSpenders = 10

// spendersPart lists the keys that have spent most.
func (v *view) spendersPart(l *namedlimit.Limit) g.Node {
	t := in(v.t, l)
	top, sinceNs := l.Spenders().Top()
	note, inside := t.NothingSettled, g.Node(nil)
	switch {
	case sinceNs == 0:
	case len(top) == 0:
		note = t.TopNone
	default:
		note = fmt.Sprintf(t.SettledSince, time.Unix(0, sinceNs).UTC().Format("2006-01-02 15:04 UTC"))
		var rows g.Group
		for _, of := range top[:min(len(top), maxSpenders)] {
			k := hotKey{Entry: topkeys.Entry{DB: of.DB, Name: of.Name, Cut: of.Cut, Terms: limiter.Terms{Kind: limiter.Named}}}
			units := t.number(of.Units)
			if of.Error > 0 {
				units = fmt.Sprintf(t.AtMostLess, units, t.number(of.Error))
			}
			rows = append(rows, el("tr", attr("data-k", k.id()), el("th", attr("scope", "row"), v.hotName(&k)), cells(units)))
		}
		inside = el("table", headings(t.Key, t.Settled), el("tbody", rows))
	}
	return el("section", el("h3", text(t.SpentMost)), el("p", class("soft"), text(note)), inside)
}

// holdsPart shows the holds of a key.
func (v *view) holdsPart(a *ask.Answer) g.Node {
	nowNs := v.page.source.Now()
	open, overdue := a.HoldsOf(nowNs)
	if open.Number+overdue.Number == 0 {
		return nil
	}
	t := in(v.t, a.Limit)
	var entries []g.Node
	var tables g.Group
	for _, of := range []struct {
		*ask.Holds
		name, id, third string
		ends            func(h *limiter.Held) string
	}{
		{&open, t.Held, "open", t.Ends, func(h *limiter.Held) string { return after(t.Texts, since(nowNs, h.EndNs)) }},
		{&overdue, t.Overdue, "overdue", t.OverdueSince, func(h *limiter.Held) string { return words.Wait(since(h.EndNs, nowNs)) }},
	} {
		entries = append(entries, entry(of.name, fmt.Sprintf(t.HoldsOf, t.number(of.Units), words.Grouped(int64(of.Number)))))
		if of.Number == 0 {
			continue
		}
		var rows g.Group
		for i := range of.First {
			h := &of.First[i]
			age := "–"
			if h.BeganNs != 0 {
				age = words.Wait(since(h.BeganNs, nowNs))
			}
			rows = append(rows, el("tr", attr("data-k", of.id+strconv.Itoa(i)), el("th", attr("scope", "row"), text(t.number(h.Units)), g.If(h.Charge, el("span", class("badge"), text(t.StaysCharged)))),
				cells(age, of.ends(h))))
		}
		tables = append(tables, el("table", attr("data-k", of.id), headings(of.name, t.Age, of.third), el("tbody", rows)),
			g.If(of.Number > len(of.First), el("p", class("soft"), text(fmt.Sprintf(t.MoreHolds, words.Grouped(int64(of.Number-len(of.First))))))))
	}
	return el("section", el("h3", text(t.Holds)), list("list", entries...), tables,
		g.If(overdue.Number > 0, el("p", class("soft"), text(t.OverdueNote))))
}

// since returns the time from one to another, 0 if that is earlier.
func since(fromNs, toNs int64) uint64 { return uint64(max(0, toNs-fromNs)) }

// mostHeld tells what a hold gets at most, if a limit bounds that.
func (v *view) mostHeld(l *namedlimit.Limit) g.Node {
	if l.MaxReservation == 0 {
		return nil
	}
	t := in(v.t, l)
	return el("p", text(fmt.Sprintf(t.MostHeld, words.Percent(l.MaxReservation), t.amount(l.MaxHold()))))
}

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/resp"
)

type line struct {
	text  string
	style style
}

type style uint8

const (
	plain style = iota
	heading
	alarm
)

// size is the size of a screen in cells. Without a height each table has up to textRows rows.
type size struct{ width, height int }

const textRows = 20

// view is what is shown: two samples. The earlier one is nil if the later one is the first of its server.
type view struct {
	server      string
	byLimited   bool
	before, now *sample
	note        string // about the connection
	isAway      bool
}

// lines returns the view as lines that fit.
func (v *view) lines(s size) []line {
	all := []line{{text: v.title()}, {text: v.totals()}}
	if s.height > 0 {
		about := line{text: v.note}
		if v.isAway {
			about.style = alarm
		}
		all = append(all, about)
	}
	keys, limits := v.keys(), v.limits()
	keys.rows, limits.rows = share(keys.rows, limits.rows, s.height-len(all))
	all = keys.appendTo(all)
	if limits.total > 0 {
		all = limits.appendTo(append(all, line{}))
	} else if v.now.noLimits != "" {
		all = append(all, line{}, line{text: "Named limits: " + resp.ErrorLine(v.now.noLimits), style: alarm})
	}
	for i := range all {
		all[i].text = cut(all[i].text, s.width)
	}
	if s.height > 0 && len(all) > s.height {
		all = all[:s.height]
	}
	return all
}

// share divides the height between the rows of two tables: what one does not need is the other's.
func share[T any](keys, limits []T, height int) ([]T, []T) {
	if height <= 0 {
		return keys[:min(len(keys), textRows)], limits[:min(len(limits), textRows)]
	}
	const around = 2 // the title and the heads of a table
	free := height - around
	if len(limits) > 0 {
		free -= around + 1
	}
	free = max(free, 0)
	nKeys := min(len(keys), max(free-len(limits), (free+1)/2))
	return keys[:nKeys], limits[:min(len(limits), free-nKeys)]
}

func (v *view) title() string {
	return fmt.Sprintf("%s  cellserver %s at %s, up %s", v.now.at.Format(time.DateTime),
		resp.Printable([]byte(v.now.version)), resp.Printable([]byte(v.server)), uptime(v.now.up))
}

func uptime(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

func (v *view) totals() string {
	n, b := v.now, v.before
	if b == nil {
		b = &sample{}
	}
	allowed, limited, failed := v.perSecond(n.allowed, b.allowed), v.perSecond(n.limited, b.limited), v.perSecond(n.errors, b.errors)
	share := ""
	if all := allowed + limited; allowed >= 0 && limited > 0 {
		share = " (" + words.Percent(limited/all) + ")"
	}
	clients := words.Grouped(n.clients) + " clients"
	if n.clients == 1 {
		clients = "1 client"
	}
	memory := words.Bytes.Text(float64(n.usedBytes))
	if n.maxBytes > 0 {
		memory += " of " + words.Bytes.Text(float64(n.maxBytes))
	}
	return spaced(fmt.Sprintf("%s allowed/s, %s limited/s%s, %s errors/s, %s, %s of keys",
		rate(allowed), rate(limited), share, rate(failed), clients, memory))
}

// perSecond returns a rate, or -1 if it is not known.
func (v *view) perSecond(now, before int64) float64 {
	if v.before == nil || now < before || !v.now.at.After(v.before.at) {
		return -1
	}
	return float64(now-before) / v.now.at.Sub(v.before.at).Seconds()
}

// rate formats calls per second; negative is unknown.
func rate(perSecond float64) string {
	if perSecond < 0 {
		return "-"
	}
	return words.Rate.Text(perSecond)
}

// spaced replaces no-break spaces, as not every terminal has them.
func spaced(text string) string { return strings.ReplaceAll(text, "\u00a0", " ") }

// table has columns of numbers, and a last one of text.
type table struct {
	title, none string
	heads       []string
	rows        [][]string
	total       int
}

func (v *view) keys() table {
	t := table{title: "Most requested keys", none: "none stands out", heads: []string{"CALLS/S", "LIMITED/S", "OF CALLS", "KEY"}, total: len(v.now.keys)}
	if v.byLimited {
		t.title, t.heads[2] = "Most limited keys", "OF LIMITED"
	}
	for _, k := range v.now.keys {
		name := resp.Quote([]byte(k.name))
		if k.db != 0 {
			name += fmt.Sprintf("  (db %d)", k.db)
		}
		t.rows = append(t.rows, []string{estimate(k.calls), estimate(k.limited), words.Percent(k.share), name})
	}
	return t
}

func estimate(perSecond float64) string {
	if perSecond < 0 {
		return "-"
	}
	return words.Estimate(perSecond)
}

func (v *view) limits() table {
	t := table{title: "Named limits", heads: []string{"ALLOWED/S", "LIMITED/S", "SHADOW/S", "NEAR/S", "LIMIT"}, total: len(v.now.limits)}
	before := map[string]namedLimit{}
	if v.before != nil {
		for _, l := range v.before.limits {
			before[l.name] = l
		}
	}
	type row struct {
		namedLimit
		rates [4]float64
	}
	var rows []row
	for _, l := range v.now.limits {
		b, known := before[l.name]
		r := row{l, [4]float64{-1, -1, -1, -1}}
		if known {
			r.rates = [4]float64{
				v.perSecond(l.allowed, b.allowed), v.perSecond(l.limited, b.limited),
				v.perSecond(l.shadow, b.shadow), v.perSecond(l.near, b.near),
			}
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.rates[1]+b.rates[2], a.rates[1]+a.rates[2]), cmp.Compare(b.rates[0], a.rates[0]), cmp.Compare(a.name, b.name))
	})
	for _, r := range rows {
		name := resp.Quote([]byte(r.name)) + "  " + resp.Printable([]byte(r.policy))
		if r.isShadow {
			name += "  (shadow)"
		}
		t.rows = append(t.rows, []string{rate(r.rates[0]), rate(r.rates[1]), rate(r.rates[2]), rate(r.rates[3]), name})
	}
	return t
}

func (t *table) appendTo(all []line) []line {
	title := t.title
	switch {
	case t.total == 0:
		return append(all, line{text: title + ": " + t.none})
	case len(t.rows) < t.total:
		title += fmt.Sprintf(" (%d of %d)", len(t.rows), t.total)
	}
	widths := t.widths()
	all = append(all, line{text: title}, line{row(t.heads, widths), heading})
	for _, r := range t.rows {
		all = append(all, line{text: spaced(row(r, widths))})
	}
	return all
}

// minWidth is the width of a narrow column, so that few change their width from round to round.
const minWidth = 8

func (t *table) widths() []int {
	widths := make([]int, len(t.heads)-1)
	for i := range widths {
		widths[i] = max(len(t.heads[i]), minWidth)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	return widths
}

// row aligns numbers to the right; the text is the last.
func row(cells []string, widths []int) string {
	var b strings.Builder
	for i, width := range widths {
		b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(cells[i])) + cells[i] + "  ")
	}
	return b.String() + cells[len(widths)]
}

// cut shortens a text to the cells of a line; 0 for as long as it is.
func cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	used, end := 0, 0 // end leaves a cell for the mark
	for i, r := range text {
		if used += cells(r); used > width {
			return text[:end] + "…"
		}
		if used < width {
			end = i + utf8.RuneLen(r)
		}
	}
	return text
}

// cells returns about how many cells of a terminal a character takes; the screen cuts what is longer.
func cells(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

package squares

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// question is what a door is asked.
type question struct {
	kind  string // check, together, explain, page, reserve, commit or extend
	calls []call
	each  bool     // together, each by itself
	hold  *holding // of the last three kinds
}

// answer is what a door says.
type answer struct {
	failed bool
	text   string // of the error
	head   bool   // one of several is limited
	rows   []row
	by     string   // the override that explains
	texts  []string // the rules that explain
	id     string   // of a hold

	other [][]row // of each of rows, what it may be besides

	headers string // RateLimit, where it is read
	nears   []bool // of each of rows, where it is read
}

// answer is the model's.
func (m *model) answer(q question, nowNs int64, u unit) (a answer) {
	if q.hold != nil {
		return m.holdAnswer(q, nowNs, u)
	}
	for _, c := range q.calls {
		if m.limit(c.name) == nil || (q.kind == "check" || q.kind == "together") && c.debit && !m.debits(c.pair, nowNs) {
			return answer{failed: true}
		}
	}
	switch q.kind {
	case "check":
		d := m.check(q.calls[0], nowNs, u)
		a.rows, a.other, a.nears = []row{d.row}, [][]row{d.alike()}, []bool{d.isNear()}
		a.headers = d.headers(q.calls[0].name)
	case "page": // what the next call gets; a shadow says what it hides
		d := m.decide(call{pair: q.calls[0].pair, units: 1, noBlock: true}, nowNs, u)
		r := row{limited: d.denied}
		if !d.denied && len(d.rules) > 0 {
			r.remaining = d.remaining + 1
		}
		a.rows = []row{r}
	case "explain":
		a.by, a.texts, a.rows = m.explained(q.calls[0].pair, nowNs, u)
	case "together":
		var all []decision
		if q.each || q.calls[0].debit {
			for _, c := range q.calls {
				all = append(all, m.check(c, nowNs, u))
			}
		} else {
			all = m.together(q.calls, nowNs, u)
		}
		for _, d := range all {
			a.rows, a.head, a.other = append(a.rows, d.row), a.head || d.limited, append(a.other, d.alike())
			a.nears = append(a.nears, d.isNear())
		}
	}
	return a
}

// explained are the looks of EXPLAIN at each rule, for one unit.
func (m *model) explained(p pair, nowNs int64, u unit) (by string, texts []string, rows []row) {
	r, _ := m.ruling(p, nowNs)
	if r.constant != "" {
		d := m.decide(call{pair: p, units: 1}, nowNs, u)
		return r.by, []string{r.constant}, []row{d.row}
	}
	for i := range r.rules {
		of := &r.rules[i]
		texts, rows = append(texts, of.text()), append(rows, m.look(call{pair: p, units: 1}, &r, i, nowNs, u))
	}
	return r.by, texts, rows
}

// fitting returns the call that a call for at most some is, and how many units that takes: as many as no rule
// denies, and without any it is a call for one. A shadow gives all.
func (m *model) fitting(c call, nowNs int64, u unit) (as call, taken int64) {
	if !c.most {
		return c, 0
	}
	as = c
	for as.units > 1 && m.decide(as, nowNs, u).denied {
		as.units--
	}
	r, _ := m.ruling(c.pair, nowNs)
	switch {
	case r.of.shadow:
		return as, c.units
	case m.decide(as, nowNs, u).denied:
		return as, 0
	}
	return as, as.units
}

func (a *answer) equals(b *answer) bool {
	if a.failed || b.failed {
		return a.failed == b.failed
	}
	if a.headers != "" && a.headers != b.headers || a.nears != nil && !slices.Equal(a.nears, b.nears) {
		return false
	}
	return a.head == b.head && a.id == b.id && a.by == b.by && slices.Equal(a.texts, b.texts) && slices.Equal(a.rows, b.rows)
}

// alike returns the rows of the rules that would reply if they were a moment later or earlier.
func (d *decision) alike() (all []row) {
	for _, of := range d.rules {
		if d.denied && !d.limited {
			of.retry = -1
		}
		of.taken = d.taken
		if of.limited = d.limited; d.debit || !d.denied || of.retry >= 0 == (d.retry >= 0) {
			all = append(all, of)
		}
	}
	return all
}

// near reports whether an answer is another one, but for times that differ by a slack in seconds.
func (a *answer) near(b *answer, slack int64) bool {
	if a.failed || b.failed || a.head != b.head || a.id != b.id || a.by != b.by || !slices.Equal(a.texts, b.texts) || len(a.rows) != len(b.rows) {
		return a.failed && b.failed
	}
	for i := range a.rows {
		some := []row{b.rows[i]}
		if b.other != nil {
			some = append(some, b.other[i]...)
		}
		if !slices.ContainsFunc(some, func(of row) bool { return a.rows[i].near(of, b.rows[i], slack) }) {
			return false
		}
	}
	return true
}

// near compares a row with that of a rule, which may reply in place of another one.
func (a *row) near(of, chosen row, slack int64) bool {
	within := func(x, y int64) bool { return max(x, y)-min(x, y) <= slack }
	return a.limited == of.limited && a.limit == of.limit && a.remaining == of.remaining && a.taken == of.taken && (a.retry < 0) == (of.retry < 0) &&
		within(a.retry, of.retry) && within(a.resets, of.resets) && within(a.retry, chosen.retry) && (a.limited || a.remaining == chosen.remaining)
}

// headers returns the RateLimit of an answer by HTTP: of what is left by each rule, or of those that deny.
func (d *decision) headers(name string) string {
	item := func(name string, of row) string {
		text := fmt.Sprintf("%q;r=%d", name, of.remaining)
		at := of.resets
		if d.limited {
			at = of.retry
		}
		if at >= 0 && of.limit > 0 {
			text += fmt.Sprintf(";t=%d", (at+999)/1000)
		}
		return text
	}
	switch {
	case d.by.constant == "UNLIMITED":
		return ""
	case len(d.rules) < 2:
		return item(name, d.row)
	}
	var all []string
	for i, of := range d.rules {
		label := d.by.rules[i].name
		if label == "" {
			label = strconv.Itoa(i + 1)
		}
		if !d.limited || d.marks[i] {
			all = append(all, item(name+":"+label, of))
		}
	}
	return strings.Join(all, ", ")
}

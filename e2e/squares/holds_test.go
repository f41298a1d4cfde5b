package squares

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const dayNs = int64(24 * time.Hour)

// holding is a call about a hold.
type holding struct {
	id     string
	given  bool // by the call
	ttlNs  int64
	charge bool
}

// hold is what a key has of a hold.
type hold struct {
	number  int
	id      string
	call    string // all that was given
	pairs   string
	endNs   int64
	units   int64
	charge  bool
	overdue bool
	shares  map[string]period // by the state of a rule
}

// period is one of a window.
type period struct{ era, turns int }

func (q *question) isHeld() bool {
	return q.kind == "reserve" || q.kind == "commit" || q.kind == "extend"
}

// pairsText and callText tell calls apart, in any order of their pairs.
func (q *question) pairsText() string {
	var all []string
	for _, c := range q.calls {
		all = append(all, c.name+":"+c.key)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (q *question) callText() string {
	var all []string
	for _, c := range q.calls {
		all = append(all, fmt.Sprint(c.name, ":", c.key, " ", c.units))
	}
	slices.Sort(all)
	return fmt.Sprint(all, q.hold.ttlNs, q.hold.charge)
}

// holdCommand is a call about a hold to Redis clients.
func (q *question) holdCommand() (words []string) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch ttl := number(q.hold.ttlNs / 1_000_000); q.kind {
	case "reserve":
		words = []string{"CL.MRESERVE", strconv.Itoa(len(q.calls))}
		defer func() {
			words = append(words, "TTL", ttl)
			if q.hold.charge {
				words = append(words, "CHARGE")
			}
			if q.hold.given {
				words = append(words, "ID", q.hold.id)
			}
		}()
	case "commit":
		words = []string{"CL.MCOMMIT", q.hold.id, strconv.Itoa(len(q.calls))}
	default:
		words = []string{"CL.MEXTEND", q.hold.id, ttl, strconv.Itoa(len(q.calls))}
	}
	for _, c := range q.calls {
		if words = append(words, c.name, c.key); q.kind != "extend" {
			words = append(words, number(c.units))
		}
	}
	return words
}

// drawn draws a question.
func (r *run) drawn() question {
	kind := one(r.Rand, r.kinds)
	q := question{kind: kind}
	if !q.isHeld() {
		return r.asking([]string{kind})
	}
	if r.setsClock() {
		q.hold = &holding{ttlNs: (1 + r.Int64N(one(r.Rand, []int64{1000, 60_000, 86_400_000}))) * 1_000_000}
	} else { // none ends while the programs run, or just now
		q.hold = &holding{ttlNs: dayNs}
	}
	if len(r.known) > 0 && (kind != "reserve" || r.often(10)) {
		if r.ofKnown(&q); kind != "commit" || !slices.ContainsFunc(q.calls, func(c call) bool { return r.limit(c.name) != nil && !r.debits(c.pair, r.now()) }) {
			return q
		} // an exact window cannot be debited
		return r.asking([]string{"check"})
	}
	q.kind, q.hold.charge, q.hold.given = "reserve", r.often(40), r.often(70)
	r.made++
	q.hold.id = fmt.Sprint("id-", r.made)
	for range 1 + r.IntN(4) {
		p := pair{one(r.Rand, names), one(r.Rand, keys)}
		if !slices.ContainsFunc(q.calls, func(c call) bool { return c.pair == p }) {
			q.calls = append(q.calls, call{pair: p, units: max(1, r.units())})
		}
	}
	return q
}

// ofKnown makes a question one about a hold that was made, and perhaps settled.
func (r *run) ofKnown(q *question) {
	of := one(r.Rand, r.known)
	calls := slices.Clone(of.calls)
	as := *of.hold
	switch q.kind {
	case "reserve": // again
		as.given = true
		if r.often(30) {
			as.ttlNs = max(1_000_000, as.ttlNs-1_000_000)
		}
	case "commit":
		for i := range calls {
			if calls[i].units = r.Int64N(calls[i].units + 1); r.often(20) {
				calls[i].units = of.calls[i].units + r.Int64N(5)
			}
		}
	default:
		as.ttlNs = q.hold.ttlNs
	}
	if q.kind != "reserve" && len(calls) > 1 && r.often(5) {
		calls = calls[1:]
	}
	r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	q.calls, q.hold = calls, &as
}

// holdKnown takes a hold's id from an answer that has a new one, and keeps the call for others.
func (r *run) holdKnown(q *question, got *answer) {
	if q.kind != "reserve" || got.failed || got.id == "" {
		return
	}
	if !q.hold.given {
		if strings.Trim(got.id, "0123456789abcdef") != "" || len(got.id) != 32 {
			r.fail("an id is %q", got.id)
		}
		for _, c := range q.calls {
			if h := r.found(c.pair, q.hold.id); h != nil {
				h.id = got.id
			}
		}
		q.hold.id, got.id = got.id, q.hold.id
	}
	if r.known = append(r.known, *q); len(r.known) > 30 {
		r.known = r.known[1:]
	}
}

func (m *model) found(p pair, id string) *hold {
	for _, h := range m.holds[p] {
		if h.id == id {
			return h
		}
	}
	return nil
}

// loses forgets a key.
func (m *model) loses(p pair) {
	delete(m.keys, p)
	delete(m.holds, p)
}

// tidy ends holds whose time is over, and forgets those that were overdue for a day.
func (m *model) tidy(nowNs int64) {
	for p, holds := range m.holds {
		for _, h := range holds {
			if h.overdue || h.endNs > nowNs {
				continue
			}
			if h.overdue = true; !h.charge {
				m.returns(p, h, 0)
				m.ends(p, h, 0, nowNs)
			}
		}
		m.holds[p] = slices.DeleteFunc(holds, func(h *hold) bool { return h.overdue && h.endNs+dayNs <= nowNs })
	}
}

// ends returns what a hold has not used to the states that still are those that it charged.
func (m *model) ends(p pair, h *hold, used, nowNs int64) {
	back := h.units - min(used, h.units)
	for id, in := range h.shares {
		e := m.keys[p][id]
		if e == nil {
			continue
		}
		isNow := e.untilNs > nowNs && e.era == in.era
		switch of := e.by; {
		case of.isFunnel():
			e.flow.End(uint64(h.number), min(used, h.units))
			e.emptyNs, _ = e.flow.TAT()
			e.untilNs = e.emptyNs
		case of.isWindow() && isNow:
			e.units = max(0, e.units-back)
		case of.algorithm == aApproximate && isNow:
			switch e.turns - in.turns {
			case 0:
				e.current = max(0, e.current-back)
			case 1:
				e.previous = max(0, e.previous-back)
			}
			of.settle(e, nowNs)
		}
	}
	h.shares = nil
}

// holdAnswer is the model's.
func (m *model) holdAnswer(q question, nowNs int64, u unit) answer {
	for _, c := range q.calls {
		if h := m.found(c.pair, q.hold.id); h != nil && q.kind != "reserve" && h.pairs != q.pairsText() {
			return answer{failed: true}
		}
	}
	switch q.kind {
	case "reserve":
		return m.reserves(q, nowNs, u)
	case "commit":
		return m.commits(q, nowNs, u)
	}
	a := answer{rows: []row{{}}}
	for _, c := range q.calls {
		if h := m.found(c.pair, q.hold.id); h != nil && !h.overdue {
			h.endNs, a.rows[0].limit = nowNs+q.hold.ttlNs, 1
		}
	}
	return m.unlessUnknown(q, a)
}

// unlessUnknown is an answer, unless there was no hold and a name has no limit.
func (m *model) unlessUnknown(q question, a answer) answer {
	for _, c := range q.calls {
		if m.limit(c.name) == nil && a.rows[0].limit == 0 {
			return answer{failed: true}
		}
	}
	return a
}

func (m *model) reserves(q question, nowNs int64, u unit) (a answer) {
	again, limited, endNs := false, false, nowNs+q.hold.ttlNs
	for _, c := range q.calls {
		if m.limit(c.name) == nil || !m.debits(c.pair, nowNs) {
			return answer{failed: true}
		}
		h := m.found(c.pair, q.hold.id)
		if h != nil && (h.call != q.callText() || h.overdue) {
			return answer{failed: true}
		}
		if h != nil {
			again, endNs = true, h.endNs
		}
		limited = limited || m.decide(c, nowNs, u).limited
	}
	if a.head = limited && !again; !a.head {
		a.id = q.hold.id
	}
	for _, c := range q.calls {
		switch d := m.decide(c, nowNs, u); {
		case again && m.found(c.pair, q.hold.id) == nil: // it has lost the hold
			m.made++
			c.hold, c.debit = m.made, true
		case again || limited && !d.limited:
			c.units = 0
		case !limited:
			m.made++
			c.hold, c.debit = m.made, d.denied // by a shadow
		}
		d := m.check(c, nowNs, u)
		a.rows, a.other, a.nears = append(a.rows, d.row), append(a.other, d.alike()), append(a.nears, d.isNear())
		if c.hold > 0 && d.by.constant == "" {
			m.holdsNow(c, &d, &q, endNs)
		}
	}
	return a
}

// holdsNow adds a hold that was charged.
func (m *model) holdsNow(c call, d *decision, q *question, endNs int64) {
	h := &hold{
		number: c.hold, id: q.hold.id, call: q.callText(), pairs: q.pairsText(), endNs: endNs, units: c.units, charge: q.hold.charge,
		shares: map[string]period{},
	}
	for i := range d.by.rules {
		id := d.by.rules[i].id()
		if e := m.keys[c.pair][id]; e != nil {
			h.shares[id] = period{e.era, e.turns}
		}
	}
	m.holds[c.pair] = append(m.holds[c.pair], h)
}

// settles ends a hold by what was used, and returns the units beyond what it has charged.
func (m *model) settles(p pair, h *hold, used, nowNs int64) (excess int64) {
	excess = used - h.units
	if h.overdue && !h.charge {
		excess = used
	} else {
		m.returns(p, h, used)
	}
	m.ends(p, h, used, nowNs)
	m.holds[p] = slices.DeleteFunc(m.holds[p], func(of *hold) bool { return of == h })
	return excess
}

func (m *model) commits(q question, nowNs int64, u unit) (a answer) {
	state := int64(0)
	var debits []call
	for _, c := range q.calls {
		h := m.found(c.pair, q.hold.id)
		if h == nil {
			debits = append(debits, call{pair: c.pair, units: c.units, debit: true})
			continue
		}
		if !h.overdue {
			state = 1
		} else if state == 0 {
			state = 2
		}
		excess := m.settles(c.pair, h, c.units, nowNs)
		if r, ok := m.ruling(c.pair, nowNs); ok && r.constant == "" && excess > 0 {
			m.check(call{pair: c.pair, units: excess, debit: true}, nowNs, u)
		}
	}
	if a.rows = []row{{limit: state}}; state == 0 {
		return m.unlessUnknown(q, a)
	}
	for _, c := range debits {
		if m.limit(c.name) != nil && c.units > 0 {
			m.check(c, nowNs, u)
		}
	}
	return a
}

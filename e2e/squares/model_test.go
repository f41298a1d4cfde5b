package squares

import (
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// unit is what a door's times are rounded up to.
type unit int64

const (
	seconds      = unit(time.Second)
	milliseconds = unit(time.Millisecond)
)

func (u unit) of(ns int64) int64 { return (ns + int64(u) - 1) / int64(u) }

// row is the decision of a limit, or of one of its rules.
type row struct {
	limited                         bool
	limit, remaining, retry, resets int64
	taken                           int64 // of a call for at most some
}

// policy is what decides a key's calls.
type policy struct {
	plan     string
	rules    []rule
	constant string // "DENY" or "UNLIMITED"
}

// words are the policy in a command.
func (p *policy) words() []string {
	switch {
	case p.constant != "":
		return []string{p.constant}
	case p.plan != "":
		return []string{"PLAN", p.plan}
	}
	var words []string
	for i := range p.rules {
		words = append(words, p.rules[i].words()...)
	}
	return words
}

// override is another policy for some keys, or for those of a pattern.
type override struct {
	keys    []string
	pattern string
	policy
}

// limit is a definition.
type limit struct {
	policy
	overrides []override
	shadow    bool
	near      float64
}

// keyOverride is an override by a command.
type keyOverride struct {
	policy
	untilNs int64 // 0 for no end
}

// model is what a server should have and do.
type model struct {
	byFile    map[string]*limit
	byCommand map[string]*limit
	plans     map[string][]rule
	overrides map[pair]keyOverride
	keys      map[pair]map[string]*entry
	holds     map[pair][]*hold
	made      int // holds, and windows
	counts    map[string]*counts
	spent     map[string]int64 // by limit
	file      int              // how often it was read
	share     float64          // of each limit that is allowed; 0 for all
}

// pair is a limit's name and a key.
type pair struct{ name, key string }

func newModel() *model {
	return &model{
		byFile: map[string]*limit{}, byCommand: map[string]*limit{}, plans: map[string][]rule{},
		overrides: map[pair]keyOverride{}, keys: map[pair]map[string]*entry{}, holds: map[pair][]*hold{}, counts: map[string]*counts{},
		spent: map[string]int64{},
	}
}

func (m *model) limit(name string) *limit {
	if l := m.byFile[name]; l != nil {
		return l
	}
	return m.byCommand[name]
}

// ruling is the policy that holds for a key.
type ruling struct {
	policy
	by   string // an override, as EXPLAIN has it; "" for none
	of   *limit
	kind string // of the override, for the table
}

func (m *model) ruling(p pair, nowNs int64) (r ruling, ok bool) {
	if r, ok = m.whole(p, nowNs); m.share > 0 {
		r.rules = slices.Clone(r.rules)
		for i := range r.rules {
			r.rules[i].share = m.share
		}
	}
	return r, ok
}

func (m *model) whole(p pair, nowNs int64) (r ruling, ok bool) {
	l := m.limit(p.name)
	if l == nil {
		return r, false
	}
	r = ruling{policy: l.policy, of: l}
	take := func(by string, from policy, kind string) bool {
		rules, known := m.plans[from.plan]
		if from.plan != "" && !known {
			return false
		}
		r.policy, r.by, r.kind = from, by+": "+strings.Join(from.words(), " "), kind
		if from.plan != "" {
			r.rules = rules
		}
		return true
	}
	if o, is := m.overrides[p]; is && (o.untilNs == 0 || o.untilNs > nowNs) && take("command", o.policy, "override by command") {
		return r, true
	}
	for _, o := range l.overrides {
		if slices.Contains(o.keys, p.key) && take("file key", o.policy, "override by key") {
			return r, true
		}
	}
	for _, o := range l.overrides {
		if matches, _ := path.Match(o.pattern, p.key); o.pattern != "" && matches && take("file pattern "+o.pattern, o.policy, "override by pattern") {
			return r, true
		}
	}
	if r.plan != "" {
		r.rules = m.plans[r.plan]
	}
	return r, true
}

// call is a request for a key's units.
type call struct {
	pair
	units int64
	debit bool
	most  bool // it takes what is left of the units

	hold    int  // number of the hold of the units; 0 for none
	noBlock bool // a look, or limited by other calls that are not charged
}

// decision is what a call gets, and would change.
type decision struct {
	row
	rules    []row  // of each
	marks    []bool // the rules that deny it, or of an allowed one those with little left
	denied   bool   // a rule denied it, which a shadow does not say
	near     bool
	by       ruling
	debit    bool
	changed  bool
	entries  map[string]*entry
	override bool
}

// decide decides a call without effect.
func (m *model) decide(c call, nowNs int64, u unit) decision {
	r, _ := m.ruling(c.pair, nowNs)
	d := decision{by: r, override: r.by != "", debit: c.debit, entries: m.keys[c.pair]}
	switch r.constant {
	case "UNLIMITED":
		d.row = row{limit: math.MaxInt64, remaining: math.MaxInt64, retry: -1}
		return d
	case "DENY":
		d.row, d.denied = row{limited: !r.of.shadow, retry: -1}, true
		return d
	}
	states := make([]*entry, len(r.rules))
	changed := make([]bool, len(r.rules))
	converted := map[string]*entry{}
	blocks := m.blocks(c.pair, &r, nowNs)
	for i := range r.rules {
		id := r.rules[i].id()
		states[i] = r.rules[i].open(m.keys[c.pair][id], nowNs)
		if e := m.keys[c.pair][id]; r.rules[i].isFunnel() && states[i].emptyNs > nowNs && e.intervalNs != states[i].intervalNs {
			converted[id] = states[i].copied()
		}
		var of row
		if of, changed[i] = r.rules[i].decide(states[i], c, nowNs, u); states[i].era == 0 {
			m.made++
			states[i].era = m.made
		}
		d.rules = append(d.rules, m.blocked(of, &r.rules[i], blocks[i], c, nowNs, u))
		d.denied = d.denied || d.rules[i].limited
	}
	begun := m.begun(c, &r, d.rules, blocks, nowNs)
	for i, e := range begun {
		d.rules[i] = m.blocked(d.rules[i], &r.rules[i], e, c, nowNs, u)
	}
	for _, of := range d.rules {
		near := float64(of.limit-of.remaining) >= math.Ceil(float64(of.limit)*r.of.near)
		d.near = d.near || near && !d.denied
		d.marks = append(d.marks, d.denied && of.limited || !d.denied && near)
	}
	d.row = d.rules[0]
	for _, of := range d.rules[1:] {
		if c.debit && fuller(of, d.row) || !c.debit && tighter(of, d.row) {
			d.row = of
		}
	}
	if maps.Copy(blocks, begun); slices.ContainsFunc(slices.Collect(maps.Values(blocks)), func(e *entry) bool { return e != nil }) {
		d.remaining = 0
	}
	d.limited = d.denied
	if d.denied && r.of.shadow {
		d.limited, d.retry = false, -1
		for i := range d.rules { // nothing is charged
			if of := &r.rules[i]; !d.rules[i].limited && !c.debit {
				d.rules[i], _ = of.decide(of.open(m.keys[c.pair][of.id()], nowNs), call{}, nowNs, u)
			}
		}
	}
	if d.denied && !c.debit || !slices.Contains(changed, true) {
		if c.units != 0 && len(converted) > 0 { // so that the times of a denial hold
			d.changed, d.entries = true, maps.Clone(d.entries)
			maps.Copy(d.entries, converted)
		}
		m.begin(&d, &r, begun, nowNs)
		return d
	}
	d.changed = true
	d.entries = map[string]*entry{}
	for i := range r.rules {
		if id := r.rules[i].id(); states[i].untilNs > nowNs {
			if changed[i] {
				states[i].by, states[i].file = r.rules[i], m.file
			}
			states[i].place = i
			d.entries[id] = states[i]
		}
	}
	m.carry(c.pair, r.rules, nowNs, d.entries)
	return d
}

// mostEntries is the number of states that a key keeps.
const mostEntries = 16

// carry keeps the states of other rules behind those of the rules, in their order, and the rules' blocks.
func (m *model) carry(p pair, rules []rule, nowNs int64, into map[string]*entry) {
	var others []string
	for id, e := range m.keys[p] {
		if e.isBlock {
			if e.untilNs > nowNs && slices.ContainsFunc(rules, func(r rule) bool { return r.blockID() == id }) {
				into[id] = e
			}
			continue
		}
		if e.untilNs > nowNs && !slices.ContainsFunc(rules, func(r rule) bool { return r.id() == id }) {
			others = append(others, id)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return m.keys[p][a].place - m.keys[p][b].place })
	for i, id := range others[:min(len(others), mostEntries-len(rules))] {
		own := *m.keys[p][id]
		own.place = len(rules) + i
		into[id] = &own
	}
}

// decide decides by one rule, which charges the state if it does not deny.
func (r *rule) decide(s *entry, c call, nowNs int64, u unit) (d row, changed bool) {
	d = row{limit: r.most(), retry: -1}
	before := s.copied()
	d.limited = c.units >= 0 && !r.allows(s, nowNs, c.units)
	free := func(units int64) int64 {
		return u.of(earliest(nowNs, func(atNs int64) bool { return r.allows(s, atNs, units) }))
	}
	switch {
	case c.units < 0:
		r.refund(s, nowNs, -c.units)
	case c.units > 0 && (c.debit || !d.limited):
		if r.add(s, nowNs, c.units); c.hold > 0 && r.isFunnel() {
			s.flow.Hold(uint64(c.hold))
		}
	}
	if changed = !same(before, s); changed {
		r.settle(s, nowNs)
	}
	switch {
	case c.debit && !r.allows(s, nowNs, 1):
		d.retry = free(1)
	case !c.debit && d.limited && c.units <= r.most():
		d.retry = free(c.units)
	}
	d.remaining = max(0, r.most()-r.used(s, nowNs))
	d.resets = u.of(r.resetNs(s, nowNs))
	return d, changed
}

func same(a, b *entry) bool {
	return a.untilNs == b.untilNs && a.emptyNs == b.emptyNs && a.units == b.units && slices.Equal(a.charges, b.charges) &&
		a.startNs == b.startNs && a.previous == b.previous && a.current == b.current
}

// tighter: the reply is that of the rule that denies longest, where -1 is for ever, else of the one with the
// fewest units left.
func tighter(a, b row) bool {
	if !a.limited || !b.limited {
		return a.limited && !b.limited || a.limited == b.limited && a.remaining < b.remaining
	}
	return uint64(a.retry) > uint64(b.retry)
}

// fuller: of a debit it is that of the rule with room for a unit last.
func fuller(a, b row) bool {
	return a.retry > b.retry || a.retry == b.retry && a.remaining < b.remaining
}

// check decides a call.
func (m *model) check(c call, nowNs int64, u unit) decision {
	c, taken := m.fitting(c, nowNs, u)
	d := m.decide(c, nowNs, u)
	d.taken = taken
	m.keep(c, d)
	m.spends(c, &d)
	return d
}

// together decides several calls, which are all charged or none. Of none, the limited ones have what they
// would get behind the others, and these what a look gets.
func (m *model) together(calls []call, nowNs int64, u unit) (all []decision) {
	tried, empty, limited := *m, *m, false
	tried.keys, tried.counts = maps.Clone(m.keys), map[string]*counts{}
	empty.keys, empty.counts = map[pair]map[string]*entry{}, tried.counts
	tried.spent, empty.spent = map[string]int64{}, map[string]int64{}
	isFirst := func(i int) bool {
		return slices.IndexFunc(calls, func(other call) bool { return other.pair == calls[i].pair }) == i
	}
	for i, c := range calls {
		c.noBlock = !isFirst(i)
		d := tried.check(c, nowNs, u)
		if empty.check(c, nowNs, u).limited && d.limited && d.retry >= 0 {
			d.row = tried.forever(c, &empty, nowNs, u)
		}
		all, limited = append(all, d), limited || d.limited
	}
	if !limited {
		for _, c := range calls {
			m.check(c, nowNs, u)
		}
		return all
	}
	for i, c := range calls {
		ahead := all[i]
		if !ahead.limited || !isFirst(i) {
			c.units = 0
		}
		if all[i] = m.check(c, nowNs, u); ahead.limited {
			all[i].row, all[i].rules = ahead.row, ahead.rules
		}
	}
	return all
}

// untilNs returns when a key expires, 0 if it is absent.
func (m *model) untilNs(p pair, nowNs int64) (untilNs int64) {
	for _, e := range m.keys[p] {
		untilNs = max(untilNs, e.untilNs)
	}
	for _, h := range m.holds[p] {
		untilNs = max(untilNs, h.endNs+dayNs)
	}
	if untilNs <= nowNs {
		return 0
	}
	return untilNs
}

// debits reports whether a key's policy can be debited.
func (m *model) debits(p pair, nowNs int64) bool {
	r, _ := m.ruling(p, nowNs)
	return r.constant != "" || !slices.ContainsFunc(r.rules, func(r rule) bool { return r.algorithm == aSliding })
}

package namedlimit

import (
	"cmp"
	"maps"
	"strings"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/wire/glob"
)

// Limit is a limit in force. All but its counts is immutable: a change of its overrides makes another one.
type Limit struct {
	Definition
	Source Source

	own      *limiter.NamedLimit // its counts belong to the name until its deletion
	byRule   []*limiter.Outcomes
	keys     *keyTable // nil without overrides of exact keys
	patterns []patternRuling
	days     *calendar.Calendar // by which spending is told
	spenders *topkeys.Spenders  // of the name until its deletion, too
	exact    int                // most exact sliding windows of a policy
	byFile   int                // overrides of keys and patterns in the definition
	digest   uint64             // of the definition
}

// ExactWindows returns the most exact sliding windows that decide a request; each may take long.
func (l *Limit) ExactWindows() int { return l.exact }

// ruling is what decides a key's requests in place of its limit's own rules.
type ruling struct {
	Policy
	named     *limiter.NamedLimit
	byCommand bool
	untilNs   int64   // 0 for no end
	below     *ruling // in force afterwards; nil for patterns and the limit's own
}

type patternRuling struct {
	pattern string
	matcher *glob.Pattern
	ruling  *ruling
}

// keyTable has the rulings of exact keys. It is immutable: recent ones are few, so that a change copies few.
type keyTable struct {
	settled, recent map[string]*ruling
	filter          filter // of settled
}

func (t *keyTable) find(key []byte) *ruling {
	if len(t.recent) > 0 {
		if r, ok := t.recent[string(key)]; ok {
			return r
		}
	}
	if !t.filter.mayHave(key) {
		return nil
	}
	return t.settled[string(key)]
}

// settled returns a table without recent rulings.
func settled(all map[string]*ruling) *keyTable {
	t := &keyTable{settled: all, filter: newFilter(len(all))}
	for key := range all {
		t.filter.add([]byte(key))
	}
	return t
}

// at returns the ruling in force at a time.
func (r *ruling) at(when *Moment) *ruling {
	for r != nil && r.untilNs != 0 && r.untilNs <= when.ns() {
		r = r.below
	}
	return r
}

// Named returns what decides the requests of a key, and the policy that it was made of.
func (l *Limit) Named(key []byte, when *Moment) (*limiter.NamedLimit, *Policy) {
	t := l.keys
	if l.patterns == nil && (t == nil || len(t.recent) == 0 && !t.filter.mayHave(key)) {
		return l.own, &l.Policy
	}
	if r, _ := l.find(key, when); r != nil {
		return r.named, &r.Policy
	}
	return l.own, &l.Policy
}

// find returns the ruling of a key, and the pattern that it is by, or nil.
func (l *Limit) find(key []byte, when *Moment) (r *ruling, pattern string) {
	if t := l.keys; t != nil {
		if r = t.find(key).at(when); r != nil {
			return r, ""
		}
	}
	for i := range l.patterns {
		if p := &l.patterns[i]; p.matcher.Matches(key) {
			return p.ruling, p.pattern
		}
	}
	return nil, ""
}

// Explanation is what decides a key's requests.
type Explanation struct {
	Override string // as text; "" for none
	Policy
	Named *limiter.NamedLimit
}

func (l *Limit) Explain(key []byte, when *Moment, reading funnel.Reading) Explanation {
	r, pattern := l.find(key, when)
	if r == nil {
		return Explanation{Policy: l.Policy, Named: l.own}
	}
	by := "file key"
	switch {
	case pattern != "":
		by = "file pattern " + pattern
	case r.byCommand:
		by = "command"
	}
	return Explanation{Override: by + ": " + strings.Join(r.Words(reading), " "), Policy: r.Policy, Named: r.named}
}

// Counts counts a limit's or a rule's decisions since its name was defined.
type Counts struct {
	Allowed       uint64 `json:"allowed"`
	Limited       uint64 `json:"limited"`
	ShadowLimited uint64 `json:"shadow_limited"` // requests that a Shadow would deny
	Near          uint64 `json:"near"`           // of the allowed, those of keys near the limit
	Over          uint64 `json:"charged_beyond"` // of the limited, debits charged beyond the limit
	Overridden    uint64 `json:"-"`              // of all, those decided by an override; a rule has none
}

func countsOf(o *limiter.Outcomes) Counts {
	return Counts{
		Allowed: o.Allowed.Load(), Limited: o.Limited.Load(), ShadowLimited: o.ShadowLimited.Load(), Near: o.Near.Load(), Over: o.Over.Load(),
	}
}

func (l *Limit) Counts() Counts {
	c, by := countsOf(&l.own.Counts.Outcomes), countsOf(&l.own.Counts.Overridden)
	c.Allowed, c.Limited, c.ShadowLimited = c.Allowed+by.Allowed, c.Limited+by.Limited, c.ShadowLimited+by.ShadowLimited
	c.Near, c.Over = c.Near+by.Near, c.Over+by.Over
	c.Overridden = by.Allowed + by.Limited + by.ShadowLimited
	return c
}

// RuleCounts returns the counts of the i-th of the limit's own rules.
func (l *Limit) RuleCounts(i int) Counts {
	if l.own.ByRule == nil { // the only one
		return countsOf(&l.own.Counts.Outcomes)
	}
	return countsOf(l.byRule[i])
}

// HoldCounts counts holds by a limit since its name was defined.
type HoldCounts struct {
	Held    uint64 `json:"holds"`              // pairs of calls
	Settled uint64 `json:"holds_settled"`      // in time
	Late    uint64 `json:"holds_settled_late"` // settled when their time was over
}

func (l *Limit) HoldCounts() HoldCounts {
	of := l.own.Counts
	return HoldCounts{Held: of.Held.Load(), Settled: of.Settled.Load(), Late: of.Late.Load()}
}

// NumOverrides returns the number of keys with an override, and of patterns.
func (l *Limit) NumOverrides() (keys, patterns int) {
	if t := l.keys; t != nil {
		keys = len(t.settled)
		for key, r := range t.recent {
			_, is := t.settled[key]
			if r == nil {
				keys--
			} else if !is {
				keys++
			}
		}
	}
	return keys, len(l.patterns)
}

// NumFileOverrides returns the number of keys and patterns with an override in the file.
func (l *Limit) NumFileOverrides() int { return l.byFile }

// builder makes limits to decide by.
type builder struct {
	calendars *calendar.Set
	plans     map[string][]Rule
}

// limit returns a limit in force with the counts of the one before it, which may be nil.
func (b *builder) limit(d Definition, source Source, before *Limit, overrides map[string]*KeyOverride) *Limit {
	l := &Limit{Definition: d, Source: source, digest: d.digest()}
	counts := &limiter.Counts{}
	l.spenders = &topkeys.Spenders{}
	known := map[uint64]*limiter.Outcomes{}
	if before != nil {
		counts, l.spenders = before.own.Counts, before.spenders
		for i := range before.own.Rules {
			known[before.own.Rules[i].ID] = before.byRule[i]
		}
	}
	l.own = b.named(l, &d.Policy, counts)
	for i := range l.own.Rules {
		l.byRule = append(l.byRule, cmp.Or(known[l.own.Rules[i].ID], &limiter.Outcomes{}))
	}
	if l.days = l.own.Calendar(); l.days == nil {
		l.days, _ = b.calendars.Of(calendar.Spec{Every: calendar.Day}) // of UTC
	}
	if len(l.byRule) > 1 { // else what overrides do not decide is the rule's
		l.own.ByRule = l.byRule
	}
	b.setOverrides(l, overrides)
	return l
}

// named returns what decides by a checked policy.
func (b *builder) named(l *Limit, p *Policy, counts *limiter.Counts) *limiter.NamedLimit {
	var rules []limiter.NamedRule
	if p.Constant == limiter.ByRules {
		rules, _ = p.build(b.calendars)
	}
	n := limiter.NewNamedLimit(rules, l.Near)
	n.Constant, n.Shadow, n.Counts, n.Unit = p.Constant, l.Shadow, counts, l.Unit
	n.BoundHolds(l.MaxReservation)
	l.exact = max(l.exact, n.ExactWindows())
	return n
}

// ruling returns what decides by an override's policy, nil if its plan is gone.
func (b *builder) ruling(l *Limit, p Policy) *ruling {
	if p.Plan != "" {
		rules, ok := b.plans[p.Plan]
		if !ok {
			return nil
		}
		p.Rules = rules
	}
	r := &ruling{Policy: p, named: b.named(l, &p, l.own.Counts)}
	r.named.Overridden = true
	return r
}

func (b *builder) setOverrides(l *Limit, overrides map[string]*KeyOverride) {
	for i := range l.Overrides {
		o := &l.Overrides[i]
		l.byFile += len(o.Keys)
		if o.Pattern != "" {
			l.byFile++
			l.patterns = append(l.patterns, patternRuling{o.Pattern, glob.Compile([]byte(o.Pattern)), b.ruling(l, o.Policy)})
		}
	}
	b.setKeys(l, overrides)
}

// setKeys sets the rulings of exact keys.
func (b *builder) setKeys(l *Limit, overrides map[string]*KeyOverride) {
	exact := map[string]*ruling{}
	for i := range l.Overrides {
		o := &l.Overrides[i]
		if o.Pattern != "" {
			continue
		}
		r := b.ruling(l, o.Policy)
		for _, key := range o.Keys {
			exact[key] = r
		}
	}
	for key, o := range overrides {
		if r := b.override(l, o, exact[key]); r != nil {
			exact[key] = r
		}
	}
	if l.keys = nil; len(exact) > 0 {
		l.keys = settled(exact)
	}
}

// override returns the ruling of an override by a command, nil if its plan is gone.
func (b *builder) override(l *Limit, o *KeyOverride, below *ruling) *ruling {
	r := b.ruling(l, o.Policy)
	if r != nil {
		r.byCommand, r.untilNs, r.below = true, o.UntilNs, below
	}
	return r
}

// settleShare bounds the recent rulings to a share of the settled ones, and settleLeast.
const (
	settleShare = 256
	settleLeast = 64
)

// change puts an override by a command in a limit that is not in force yet, or removes it if o is nil.
func (b *builder) change(l *Limit, key string, o *KeyOverride) {
	t := l.keys
	if t == nil {
		t = &keyTable{}
	}
	below := t.find([]byte(key))
	if below != nil && below.byCommand {
		below = below.below
	}
	next := below
	if o != nil {
		next = cmp.Or(b.override(l, o, below), below)
	}
	recent := maps.Clone(t.recent)
	if recent == nil {
		recent = map[string]*ruling{}
	}
	recent[key] = next
	if _, is := t.settled[key]; next == nil && !is {
		delete(recent, key) // else it would hide nothing
	}
	now := &keyTable{t.settled, recent, t.filter}
	if len(recent) > settleLeast+len(t.settled)/settleShare {
		now = now.settle()
	}
	if len(now.settled)+len(now.recent) == 0 {
		now = nil
	}
	l.keys = now
}

func (t *keyTable) settle() *keyTable {
	all := maps.Clone(t.settled)
	if all == nil {
		all = map[string]*ruling{}
	}
	maps.Copy(all, t.recent)
	maps.DeleteFunc(all, func(_ string, r *ruling) bool { return r == nil })
	return settled(all)
}

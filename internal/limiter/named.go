package limiter

import (
	"encoding/binary"
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

const MaxRules = 16

// NamedRule is a rule of a named limit, made by PlainRule or OtherRule.
type NamedRule struct {
	Rule Rule
	ID   uint64 // of its state
	near int64  // most remaining units at which a key is near the limit; negative for none

	block block
}

// PlainRule returns the rule of a funnel whose state is known by its period.
func PlainRule(l funnel.Limit, periodNs int64) NamedRule {
	return NamedRule{Rule: Rule{Unit: funnel.WholeSeconds, Funnel: l}, ID: uint64(periodNs), near: -1}
}

// OtherRule returns a rule whose state is known by its kind and an identity.
func OtherRule(r Rule, identity string) NamedRule {
	r.Unit = funnel.WholeSeconds
	return NamedRule{Rule: r, ID: stateID(r.Kind, identity), near: -1}
}

func (r *NamedRule) isPlain() bool { return isPlainID(r.ID) }

// NamedLimit decides requests of a named limit, or of an override. It is immutable but for its counts.
type NamedLimit struct {
	Rules      []NamedRule
	Constant   Constant
	Shadow     bool    // denies nothing and reports denials
	Overridden bool    // an override's
	Counts     *Counts // of the limit
	ByRule     []*Outcomes

	plain   bool            // all rules are plain
	shaped  bool            // most states are of a Shape
	words   uint8           // of these
	funnels bool            // some rules are funnels
	blocks  bool            // some rules block
	alone   bool            // of a plain limiter's key
	exact   int             // number of exact sliding windows
	results []funnel.Result // of each rule in the last decision; nil but for Precise
	near    float64         // share of a rule's capacity
	hold    *Hold           // of a request; nil for none

	// What few calls need is behind what all need.
	Unit    string  // of its integers, as RateLimit-Policy names it; "" for requests
	MaxHold int64   // most units of a hold, by BoundHolds; 0 for no bound
	held    float64 // share of the smallest capacity that a hold may have; 0 for no bound
}

// Constant is an answer without a state.
type Constant uint8

const (
	ByRules Constant = iota
	Deny
	Unlimited
)

// NewNamedLimit returns a limit by rules. A key is near the limit from that share of a rule's capacity on; 0
// is none.
func NewNamedLimit(rules []NamedRule, near float64) *NamedLimit {
	n := &NamedLimit{Rules: make([]NamedRule, len(rules)), plain: true, near: near}
	for i, r := range rules {
		r.setNear(near)
		n.Rules[i] = r
		n.plain = n.plain && r.isPlain()
		n.funnels = n.funnels || r.Rule.Kind == Funnel
		n.blocks = n.blocks || r.block.forNs > 0
		if r.Rule.Kind == SlidingWindow {
			n.exact++
		}
	}
	n.setWords()
	return n
}

func (r *NamedRule) setNear(share float64) {
	if limit := r.Rule.capacity(); share > 0 {
		r.near = limit - int64(math.Ceil(float64(limit)*share))
	}
}

// Holds reports whether what a request is charged is held, to be settled later.
func (r *Rule) Holds() bool {
	n := r.named()
	return n != nil && n.hold != nil
}

// Constantly returns the answer that needs no state, if there is one.
func (r *Rule) Constantly() (result funnel.Result, ok bool) {
	if r.Kind != Named {
		return result, false
	}
	n := r.named()
	if n == nil || n.Constant == ByRules {
		return result, false
	}
	return n.constantly(), true
}

func (n *NamedLimit) constantly() funnel.Result {
	switch {
	case n.Constant == Unlimited:
		return funnel.Result{Limit: math.MaxInt64, Remaining: math.MaxInt64, RetryAfter: -1}
	case n.Shadow:
		return funnel.Result{Marks: funnel.Shadowed, RetryAfter: -1}
	}
	return funnel.Result{Limited: true, RetryAfter: -1}
}

// fits reports whether all rules, when empty, hold quantity units.
func (n *NamedLimit) fits(quantity int64) bool {
	for i := range n.Rules {
		if quantity > n.Rules[i].Rule.capacity() {
			return false
		}
	}
	return true
}

// Calendar returns that of the first quota, nil without any.
func (n *NamedLimit) Calendar() *calendar.Calendar {
	for i := range n.Rules {
		if r := &n.Rules[i].Rule; r.Kind == Quota {
			return r.calendar()
		}
	}
	return nil
}

func (n *NamedLimit) Debits() bool { return n.exact == 0 }

func (n *NamedLimit) ExactWindows() int { return n.exact }

// decide is decideBase, with the holds of a key following.
func (n *NamedLimit) decide(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool, err error) {
	if n.hold != nil || hasHolds(s.Payload) {
		changed, err = n.decideHolding(s, nowNs, quantity, flags, unit, result)
	} else {
		changed = n.decideBase(s, nowNs, quantity, flags, unit, result)
	}
	switch {
	case !changed:
	case n.alone:
		s.release()
	case flags&Debit != 0 && n.hold == nil:
		s.Notes.Spend(nowNs, max(quantity, 0))
	}
	return changed, err
}

// decideBase charges all rules or none. The result is that of the rule that denies longest, else of the one
// with the least left. States of other rules are kept: an override, or an earlier definition, may hold again.
func (n *NamedLimit) decideBase(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	if n.funnels && n.strange(s.Payload, nowNs) {
		return n.decideStrange(s, nowNs, quantity, flags, unit, result)
	}
	return n.decideCharged(s, nowNs, quantity, flags, unit, result)
}

// decideCharged is decide for a payload without strange funnels. A denial that begins a block is decided
// again, for its times.
func (n *NamedLimit) decideCharged(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	changed = n.decideRules(s, nowNs, quantity, flags, unit, result)
	if begun := n.beginning(quantity, flags, result); begun != 0 && n.begin(s, nowNs, begun) {
		*result = funnel.Result{}
		n.decideRules(s, nowNs, quantity, flags, unit, result)
		result.Marks |= funnel.Changed
		return true
	}
	return changed
}

// decideRules is decideCharged without blocks that begin.
func (n *NamedLimit) decideRules(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	switch {
	case n.plain && !n.hasOthers(s.Payload, nowNs):
		return n.decidePlain(s, nowNs, quantity, flags, unit, result)
	case len(n.Rules) <= fewRules:
		return n.decideFew(s, nowNs, quantity, flags, result)
	default:
		return n.decideMany(s, nowNs, quantity, flags, result)
	}
}

// decidePlain is decide for plain funnels without states of others.
func (n *NamedLimit) decidePlain(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	rules := n.Rules[:min(len(n.Rules), MaxRules)]
	var tats [MaxRules]int64
	for i := range rules {
		tats[i] = plainTAT(s.Payload, rules[i].ID, nowNs)
	}
	if !n.charge(tats[:len(rules)], nowNs, quantity, flags, unit, result) {
		return false
	}
	b := s.Payload[:0]
	s.ExpiresNs = nowNs
	for i := range rules {
		if tats[i] > nowNs {
			b = binary.LittleEndian.AppendUint64(b, rules[i].ID)
			b = binary.LittleEndian.AppendUint64(b, uint64(tats[i]))
			b = binary.LittleEndian.AppendUint64(b, rules[i].Rule.Funnel.IntervalNs())
			s.ExpiresNs = max(s.ExpiresNs, tats[i])
		}
	}
	s.Payload = b
	return true
}

// charge decides by plain funnels and their TATs, and reports whether these have changed and are to be
// stored.
func (n *NamedLimit) charge(tats []int64, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	rules := n.Rules[:len(tats)]
	denied, near := uint16(0), uint16(0)
	for i := range tats {
		w := &rules[i]
		var newTATNs int64
		var r funnel.Result
		if flags&Debit == 0 {
			newTATNs, r = w.Rule.Funnel.ThrottleIn(unit, tats[i], nowNs, quantity)
		} else {
			newTATNs, r = w.Rule.Funnel.DebitIn(unit, tats[i], nowNs, quantity)
		}
		changed = changed || newTATNs != tats[i]
		tats[i] = newTATNs
		denied |= uint16(oneIf(r.Limited)) << i
		near |= uint16(oneIf(r.Remaining <= w.near)) << i
		n.choose(i, &r, result, flags)
	}
	return n.settle(denied, near, flags, result) && changed
}

// choose makes the i-th rule's result the reply's if it is tighter than those before.
func (n *NamedLimit) choose(i int, r, result *funnel.Result, flags Flags) {
	if i == 0 || flags&Debit == 0 && Tighter(r, result) || flags&Debit != 0 && fuller(r, result) { // by field, see decideSmall
		result.Limited, result.Limit, result.Remaining = r.Limited, r.Limit, r.Remaining
		result.RetryAfter, result.ResetAfter = r.RetryAfter, r.ResetAfter
	}
	result.Marks |= r.Marks
	if n.results != nil {
		n.results[i] = *r
	}
}

// settle completes a result and reports whether the rules are to be charged.
func (n *NamedLimit) settle(denied, near uint16, flags Flags, result *funnel.Result) (charges bool) {
	if denied == 0 {
		result.Marks |= funnel.MarksOf(0, near)
		return true
	}
	result.Marks |= funnel.MarksOf(denied, 0)
	result.Limited = true
	if n.Shadow {
		result.Limited, result.RetryAfter = false, -1
		result.Marks |= funnel.Shadowed
	}
	return flags&(Debit|CountDenied) != 0
}

// Tighter reports whether a is limited longer than b, else has less left. A result that never allows the
// request is the tightest.
func Tighter(a, b *funnel.Result) bool {
	if a.Limited != b.Limited {
		return a.Limited
	}
	if a.Limited {
		return uint64(a.RetryAfter) > uint64(b.RetryAfter)
	}
	return a.Remaining < b.Remaining
}

// fuller reports whether a debited rule has room for a unit later, else has less left.
func fuller(a, b *funnel.Result) bool {
	return a.RetryAfter > b.RetryAfter || a.RetryAfter == b.RetryAfter && a.Remaining < b.Remaining
}

// OfNamed returns the rule of CL.CHECK.
func OfNamed(n *NamedLimit) Rule { return Rule{Kind: Named, Unit: funnel.WholeSeconds, Shared: n} }

func (r *Rule) named() *NamedLimit {
	n, _ := r.Shared.(*NamedLimit)
	return n
}

// namedLimits is Named. Its limits are defined, not given in a request.
type namedLimits struct{ defaults }

func (namedLimits) row() Row {
	return Row{Name: "cl-limit", Type: "cl-limit", Encoding: "funnels", Command: "cl.check"}
}

func (namedLimits) makesKey(r Rule, quantity int64) bool {
	n := r.named()
	return quantity > 0 && n != nil && n.Constant == ByRules && (r.Flags&Debit != 0 || n.hold != nil && n.Shadow || n.fits(quantity))
}

func (namedLimits) share(r Rule, share float64) Rule {
	if n := r.named(); n != nil {
		shared := *n
		shared.Rules = make([]NamedRule, len(n.Rules))
		for i, of := range n.Rules {
			of.Rule.Share(share)
			of.setNear(n.near)
			shared.Rules[i] = of
		}
		shared.BoundHolds(n.held)
		r.Shared = &shared
	}
	return r
}

func (namedLimits) valid(s State) bool {
	lastNs, n, blocks, holds, end := int64(math.MinInt64), 0, 0, 0, 0
	for at, e := range entries(s.Payload) {
		switch {
		case holds > 0: // they are the last
			return false
		case e.isHolds():
			holds++
		case e.isBlock():
			blocks++
		default:
			n++
		}
		if n > MaxRules || blocks > MaxRules || !e.valid() {
			return false
		}
		lastNs, end = max(lastNs, e.expiresNs), at+e.headBytes()+len(e.payload)
	}
	return end == len(s.Payload) && lastNs <= s.ExpiresNs // later, where ended holds lowered it
}

func (namedLimits) shift(payload []byte, byNs int64) {
	for at, e := range entries(payload) {
		binary.LittleEndian.PutUint64(payload[at+entryExpires:], uint64(funnel.Shift(e.expiresNs, byNs)))
		e.kind().of().shift(e.payload, byNs)
	}
}

// clocked has each rule's expiry, and the numbers of its payload.
func (namedLimits) clocked(s State, visit Visit) {
	visit(Part{}, ExpiresAt, LatestOfAll)
	for at, e := range entries(s.Payload) {
		visit(Part{Of: e.id}, at+entryExpires, Latest)
		e.kind().of().clocked(e.state(), func(part Part, of int, form Form) {
			if part.What++; !e.isHolds() { // has one number
				part = Part{1, e.id}
			}
			if of != ExpiresAt {
				visit(part, at+e.headBytes()+of, form)
			}
		})
	}
}

func (namedLimits) endNs(s State, nowNs int64) int64 {
	endNs := int64(NeverNs)
	for _, e := range entries(s.Payload) {
		switch {
		case e.expiresNs <= nowNs:
		case e.isBlock():
			endNs = min(endNs, e.expiresNs)
		default:
			endNs = min(endNs, e.kind().of().endNs(e.state(), nowNs))
		}
	}
	return endNs
}

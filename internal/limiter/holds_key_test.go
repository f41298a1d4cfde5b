package limiter_test

import (
	"maps"
	"math/big"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/test/flowtest"
)

// heldState is the state of a rule: a funnel's flow; the end of a window, and the units settled in it, to
// which those of its holds come; the start of an approximate one's present period and the same of both.
type heldState struct {
	rule   heldRule // that has charged it
	era    int      // how often it began anew
	endNs  int64
	counts [2]int64 // settled units, of this and of the previous period

	startNs, periodNs int64

	taken []taking // by an exact window

	flowtest.Flow // of a funnel
}

// taking is units that an exact window counts for a period.
type taking struct{ atNs, units int64 }

// share is what a hold has in a window: while its era lasts, units of this period or of the previous one.
type share struct{ era, period int }

const (
	present = iota
	previous
	gone
)

// held is a hold of a key.
type held struct {
	number  uint64
	id      limiter.HoldID
	call    limiter.HoldCall
	beganNs int64
	endNs   int64
	units   int64
	charge  bool
	overdue bool
	shares  map[string]share
}

// heldKey is the model of a key.
type heldKey struct {
	states map[string]*heldState
	holds  []held
	next   uint64
	spent  spending
	limiter.Ended
}

func (k *heldKey) spends(atNs, units int64) { k.spent = k.spent.with(atNs, units) }

func newHeldKey() *heldKey { return &heldKey{states: map[string]*heldState{}} }

func (k *heldKey) clone() *heldKey {
	own := *k
	own.states, own.holds = map[string]*heldState{}, slices.Clone(k.holds)
	for id, s := range k.states {
		as := *s
		as.Flow, as.taken = s.Clone(), slices.Clone(s.taken)
		own.states[id] = &as
	}
	for i := range own.holds {
		own.holds[i].shares = maps.Clone(own.holds[i].shares)
	}
	return &own
}

// shift adds to every time.
func (k *heldKey) shift(byNs int64) {
	k.spent = k.spent.shift(byNs)
	for i := range k.holds {
		k.holds[i].endNs += byNs
		k.holds[i].beganNs += byNs
	}
	for _, s := range k.states {
		s.endNs, s.startNs = s.endNs+byNs, s.startNs+byNs
		s.Shift(byNs)
		for i := range s.taken {
			s.taken[i].atNs += byNs
		}
	}
}

// count returns the units that are settled or held in a window, or in a period of one.
func (k *heldKey) count(id string, period int) int64 {
	s := k.states[id]
	n := s.counts[period]
	for i := range k.holds {
		if of, has := k.holds[i].shares[id]; has && of.era == s.era && of.period == period {
			n += k.holds[i].units
		}
	}
	return n
}

// untilNs returns when a window ends.
func (k *heldKey) untilNs(id string) int64 {
	s := k.states[id]
	switch {
	case s.rule.kind != limiter.ApproxWindow:
		return s.endNs
	case k.count(id, present) > 0:
		return s.startNs + 2*s.periodNs
	case k.count(id, previous) > 0:
		return s.startNs + s.periodNs
	}
	return 0
}

// tidy ends holds whose time is over, and forgets them after a day, or if there are too many.
func (k *heldKey) tidy(nowNs int64) {
	for i := range k.holds {
		h := &k.holds[i]
		if h.overdue || h.endNs > nowNs {
			continue
		}
		if h.overdue = true; h.charge {
			k.Charged++
			continue
		}
		k.Returned++
		k.spends(h.beganNs, -h.units)
		k.end(h, 0)
	}
	forget := func(h *held) { k.end(h, h.units) }
	k.holds = slices.DeleteFunc(k.holds, func(h held) bool {
		old := h.overdue && h.endNs+heldDay <= nowNs
		if old {
			forget(&h)
		}
		return old
	})
	for _, n := k.known(); n > mostOverdue; n-- {
		oldest := -1
		for i := range k.holds {
			if k.holds[i].overdue && (oldest < 0 || k.holds[i].endNs < k.holds[oldest].endNs) {
				oldest = i
			}
		}
		forget(&k.holds[oldest])
		k.holds = slices.Delete(k.holds, oldest, oldest+1)
		k.Dropped++
	}
	for _, s := range k.states {
		if s.rule.isFunnel() {
			s.Fold(nowNs)
		}
	}
}

const mostOverdue = 1024

// known returns the numbers of open and of overdue holds.
func (k *heldKey) known() (open, overdue int) {
	for i := range k.holds {
		if k.holds[i].overdue {
			overdue++
		} else {
			open++
		}
	}
	return open, overdue
}

// end settles a hold's shares.
func (k *heldKey) end(h *held, used int64) {
	used = min(used, h.units)
	for id, of := range h.shares {
		s := k.states[id]
		if s.rule.isFunnel() {
			s.End(h.number, used)
		} else if of.era == s.era && of.period != gone {
			s.counts[of.period] += used
		}
		delete(h.shares, id)
		if !s.rule.isFunnel() { // refunds may have taken more
			for period := range s.counts {
				s.counts[period] -= min(0, k.count(id, period))
			}
		}
	}
	h.shares = nil
}

// turn moves an approximate window to the period at a time.
func (k *heldKey) turn(id string, nowNs, periodNs int64) {
	s := k.states[id]
	startNs, periods := turned(s.startNs, nowNs, periodNs, k.count(id, present)+k.count(id, previous))
	switch periods {
	case gone:
		s.era, s.counts = s.era+1, [2]int64{}
	case 1:
		s.counts = [2]int64{0, s.counts[present]}
		for i := range k.holds {
			if of, has := k.holds[i].shares[id]; has {
				of.period = min(of.period+1, gone)
				k.holds[i].shares[id] = of
			}
		}
	}
	s.startNs = startNs
}

// turned returns the start of the period at a time, and how many have ended.
func turned(startNs, nowNs, periodNs, units int64) (newStartNs int64, periods int) {
	switch elapsedNs := nowNs - startNs; {
	case units == 0 || elapsedNs >= 2*periodNs:
		return nowNs, gone
	case elapsedNs >= periodNs:
		return startNs + periodNs, 1
	}
	return startNs, 0
}

// used returns the units of a window that count for a rule.
func (k *heldKey) used(r *heldRule, nowNs int64) int64 {
	s := k.states[r.id]
	if s == nil || r.kind != limiter.SlidingWindow && k.untilNs(r.id) <= nowNs {
		return 0
	}
	if r.kind == limiter.SlidingWindow {
		n := int64(0)
		for _, of := range s.taken {
			if of.atNs > nowNs-r.periodNs {
				n += of.units
			}
		}
		return n
	}
	now := k.count(r.id, present)
	if r.kind != limiter.ApproxWindow {
		return now
	}
	before := k.count(r.id, previous)
	startNs, periods := turned(s.startNs, nowNs, r.periodNs, now+before)
	switch periods {
	case 1:
		now, before = 0, now
	case gone:
		return 0
	}
	leftNs := r.periodNs - min(r.periodNs, max(0, nowNs-startNs))
	part := new(big.Int).Mul(big.NewInt(before), big.NewInt(leftNs))
	part.Add(part, big.NewInt(r.periodNs-1)).Div(part, big.NewInt(r.periodNs))
	return now + part.Int64()
}

// denies returns whether a request is denied, and whether rounding may decide.
func (k *heldKey) denies(l *law, nowNs, units int64) (denied, unsure bool) {
	for i := range l.rules {
		r := &l.rules[i]
		s := k.states[r.id]
		switch {
		case units > r.capacity:
			denied = true
		case !r.isFunnel():
			denied = denied || k.used(r, nowNs)+units > r.capacity
		case s != nil:
			debtNs, slackNs := s.Seen(nowNs, r.intervalNs, r.toleranceNs())
			overNs := debtNs + units*r.intervalNs - r.toleranceNs()
			denied = denied || overNs > 0
			unsure = unsure || slackNs > 0 && overNs > -slackNs && overNs <= slackNs
		}
	}
	return denied, unsure
}

// rebase is what each request that is no look does to funnels.
func (k *heldKey) rebase(l *law, nowNs int64) {
	for i := range l.rules {
		if s := k.states[l.rules[i].id]; s != nil && l.rules[i].isFunnel() {
			s.Rebase(nowNs, l.rules[i].intervalNs, l.rules[i].toleranceNs())
			s.rule = l.rules[i]
		}
	}
}

// charges charges all rules, perhaps for a hold.
func (k *heldKey) charges(l *law, nowNs, units int64, h *held) {
	k.rebase(l, nowNs)
	for i := range l.rules {
		r := &l.rules[i]
		s := k.states[r.id]
		if s == nil {
			s = &heldState{rule: *r}
			k.states[r.id] = s
		}
		if r.isFunnel() {
			number := uint64(0)
			if h != nil {
				number, h.shares[r.id] = h.number, share{}
			}
			s.rule = *r
			s.Charge(nowNs, units, r.intervalNs, number)
			continue
		}
		if r.kind == limiter.SlidingWindow {
			s.taken = append(slices.DeleteFunc(s.taken, func(of taking) bool { return of.atNs <= nowNs-r.periodNs }), taking{nowNs, units})
			continue
		}
		live := k.untilNs(r.id) > nowNs
		if !live {
			s.era, s.counts, s.startNs, s.endNs = s.era+1, [2]int64{}, nowNs, nowNs
		}
		switch {
		case r.kind == limiter.ApproxWindow && live:
			k.turn(r.id, nowNs, r.periodNs)
		case r.kind == limiter.FixedWindow && !live:
			s.endNs = nowNs + r.periodNs
		case r.kind == limiter.Quota:
			s.endNs = max(s.endNs, r.boundaryNs(nowNs))
		}
		s.rule, s.periodNs = *r, r.periodNs
		if h != nil {
			h.shares[r.id] = share{s.era, present}
		} else {
			s.counts[present] += units
		}
	}
}

// refunds gives units back to all rules.
func (k *heldKey) refunds(l *law, nowNs, units int64) {
	k.rebase(l, nowNs)
	for i := range l.rules {
		r := &l.rules[i]
		s := k.states[r.id]
		switch {
		case s == nil:
		case r.isFunnel():
			s.rule = *r
			s.Refund(nowNs, units, r.intervalNs)
		case k.untilNs(r.id) > nowNs:
			if r.kind == limiter.ApproxWindow {
				if _, periods := turned(s.startNs, nowNs, r.periodNs, 1); periods == gone || periods == 1 && k.count(r.id, present) == 0 {
					continue // nothing counts, so nothing changes
				}
				k.turn(r.id, nowNs, r.periodNs)
				s.periodNs = r.periodNs
			}
			now := min(units, k.count(r.id, present))
			s.counts[present] -= now
			if r.kind == limiter.ApproxWindow {
				s.counts[previous] -= min(units-now, k.count(r.id, previous))
			}
		}
	}
}

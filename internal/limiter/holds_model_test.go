package limiter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// TestHolds: a million random steps are as the model says, and all units are conserved at each.
func TestHolds(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	const stepsOfRun = 1000
	runs := 1000
	if testing.Short() {
		runs = 50
	}
	classes := []class{{}, {}, {huge: true}, {rates: true}, {periods: true}, {refunds: true}, {}, {rates: true, periods: true, huge: true, refunds: true}}
	seed, done := randtest.Seed(t, 50), map[string]int{}
	for i := range runs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		if !t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newHeldRun(t, newHeldArtist(t, rng, classes[i%len(classes)]), done)
			for range stepsOfRun {
				r.step()
			}
		}) {
			break
		}
	}
	t.Log(done)
	for _, what := range []string{"held", "held by a shadow", "denied", "open settled", "overdue settled", "excess", "lost", "extended", "by a constant", "crashed"} {
		if done[what] < runs/4 {
			t.Errorf("%s: only %d", what, done[what])
		}
	}
}

func (r *heldRun) step() {
	clear(r.touched)
	switch n := r.IntN(100); {
	case n < 22:
		if r.passes(); n < 5 {
			r.touched = map[int]bool{0: true, 1: true, 2: true, 3: true}
		}
	case n < 44:
		r.reserve()
	case n < 60:
		r.settle()
	case n < 65:
		r.extend()
	case n < 78:
		r.check(r.units(r.law(0)))
	case n < 82:
		if r.refunds {
			r.check(-r.units(r.law(1)))
		}
	case n < 87:
		r.look()
	case n < 90:
		r.defines()
	case n < 93:
		r.overrides()
	case n < 94:
		r.forgets()
	case n < 96:
		r.snapshot()
	case n < 98:
		r.crashes()
	case n < 99:
		r.shifts()
	}
	for i := range r.pairs {
		if r.touched[i] {
			r.verify(i)
		}
	}
}

// passes lets time pass, often to when something ends, or close to it.
func (r *heldRun) passes() {
	byNs := r.Int64N(pick(r.Rand, []int64{2, heldMs, heldSec, 10 * heldSec, 600 * heldSec, 4 * 3600 * heldSec, 2 * heldDay}))
	p := pick(r.Rand, r.pairs)
	var ends, debts []int64
	for i := range p.model.holds {
		ends = append(ends, p.model.holds[i].endNs, p.model.holds[i].endNs+heldDay)
	}
	for id, s := range p.model.states {
		if s.rule.isFunnel() {
			tatNs, _ := s.TAT()
			if ends = append(ends, tatNs); tatNs > r.nowNs {
				debts = append(debts, tatNs-r.nowNs)
			}
		} else {
			ends = append(ends, p.model.untilNs(id), s.startNs+s.periodNs)
		}
	}
	slices.Sort(ends) // as maps have no order
	slices.Sort(debts)
	switch n := r.IntN(10); {
	case n < 4 && len(ends) > 0:
		byNs = max(0, pick(r.Rand, ends)+r.Int64N(3)-1-r.nowNs)
	case n < 8 && len(debts) > 0: // a funnel drains, most of it
		byNs = r.Int64N(1 + pick(r.Rand, debts)/4*5)
	}
	r.nowNs += min(byNs, 40*heldDay)
}

func (k *heldKey) find(id limiter.HoldID) *held {
	for i := range k.holds {
		if k.holds[i].id == id {
			return &k.holds[i]
		}
	}
	return nil
}

// settle settles a call's pairs. Those that have lost it are debited.
func (r *heldRun) settle() {
	if len(r.calls) == 0 {
		return
	}
	of := pick(r.Rand, r.calls)
	pairs := of.call.Pairs
	if r.often(5) {
		pairs++
	}
	found, lost, used := false, []int{}, make([]int64, len(of.pairs))
	for n, i := range of.pairs {
		switch r.IntN(4) {
		case 0:
			used[n] = of.units[n]
		case 1:
			used[n] = of.units[n] + r.Int64N(of.units[n]+3)
		default:
			used[n] = r.Int64N(of.units[n] + 1)
		}
		if r.law(i).exact { // which cannot be debited
			used[n] = 0
		}
	}
	r.tell("settle %v of pairs %v, id %x, pairs %t", used, of.pairs, of.id[:2], pairs == of.call.Pairs)
	for n, i := range of.pairs {
		switch state, is := r.settles(i, &of, pairs, used[n]); {
		case !is: // other pairs
		case state != limiter.NoHold:
			found = true
		default:
			lost = append(lost, n)
		}
	}
	for _, n := range lost {
		if found && pairs == of.call.Pairs && used[n] > 0 {
			r.tell("pair %d has lost it", of.pairs[n])
			r.done["lost"]++
			r.debits(of.pairs[n], used[n])
		}
	}
}

func (r *heldRun) settles(i int, of *heldCall, pairs uint32, used int64) (state limiter.HoldState, is bool) {
	k, l := r.pairs[i].model, r.law(i)
	k.tidy(r.nowNs)
	got := r.does(i, false, func(s *limiter.State) (o outcome) {
		step := limiter.Settle{Rule: limiter.OfNamed(l.by), ID: of.id, Pairs: pairs, Used: used}
		o.changed, o.err = step.Do(s, r.nowNs)
		if o.state = step.State; o.err == nil {
			o.held, o.debited = step.Held, step.Debited
		}
		return o
	})
	h := k.find(of.id)
	switch {
	case h == nil:
		if got.changed || got.err != nil || got.state != limiter.NoHold {
			r.fail("pair %d: a settle without a hold: %+v", i, got)
		}
		return limiter.NoHold, true
	case h.call.Pairs != pairs:
		if !errors.Is(got.err, limiter.ErrOtherPairs) {
			r.fail("pair %d: a settle of other pairs: %+v", i, got)
		}
		return 0, false
	}
	want, excess := limiter.OpenHold, used-h.units
	if h.overdue {
		want = limiter.OverdueHold
	}
	if h.overdue && !h.charge {
		excess = used
	}
	if excess = max(0, excess); l.constant != limiter.ByRules {
		excess = 0
		r.done["by a constant"]++
	}
	if got.err != nil || !got.changed || got.state != want || got.held != h.units || got.debited != excess {
		r.fail("pair %d: a settle of %+v: got %+v, want state %d, debited %d", i, *h, got, want, excess)
	}
	if want == limiter.OpenHold || h.charge {
		k.spends(h.beganNs, -max(0, h.units-used))
	}
	k.spends(h.beganNs, excess)
	k.end(h, used)
	k.holds = slices.DeleteFunc(k.holds, func(of held) bool { return of.number == h.number })
	if excess > 0 {
		k.charges(l, r.nowNs, excess, nil)
		r.done["excess"]++
	}
	r.done[map[limiter.HoldState]string{limiter.OpenHold: "open settled", limiter.OverdueHold: "overdue settled"}[want]]++
	return want, true
}

// extend moves the end of a call's holds.
func (r *heldRun) extend() {
	if len(r.calls) == 0 {
		return
	}
	of, ttlNs := pick(r.Rand, r.calls), r.ttlNs()
	pairs := of.call.Pairs
	if r.often(5) {
		pairs++
	}
	r.tell("extend %v of pairs %v by %d ns", of.id[:2], of.pairs, ttlNs)
	for _, i := range of.pairs {
		k := r.pairs[i].model
		k.tidy(r.nowNs)
		got := r.does(i, false, func(s *limiter.State) (o outcome) {
			step := limiter.Extend{ID: of.id, Pairs: pairs, TTLNs: ttlNs}
			o.changed, o.err = step.Do(s, r.nowNs)
			if step.Open {
				o.state = limiter.OpenHold
			}
			return o
		})
		h := k.find(of.id)
		switch {
		case h == nil:
			if got.changed || got.err != nil || got.state != limiter.NoHold {
				r.fail("pair %d: extended without a hold: %+v", i, got)
			}
		case h.call.Pairs != pairs:
			if !errors.Is(got.err, limiter.ErrOtherPairs) {
				r.fail("pair %d: extended with other pairs: %+v", i, got)
			}
		case h.overdue:
			if got.changed || got.err != nil || got.state != limiter.NoHold {
				r.fail("pair %d: extended when overdue: %+v", i, got)
			}
		default:
			if got.err != nil || got.state != limiter.OpenHold {
				r.fail("pair %d: not extended: %+v", i, got)
			}
			h.endNs = r.nowNs + ttlNs
			r.done["extended"]++
		}
	}
}

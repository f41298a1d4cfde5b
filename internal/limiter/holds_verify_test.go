package limiter_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// look looks at a pair in some way. Its other state is not looked at.
func (r *heldRun) look() {
	i := r.IntN(len(r.pairs))
	k, l := r.pairs[i].model, r.law(i)
	k.tidy(r.nowNs)
	switch r.IntN(3) {
	case 0:
		h := &limiter.Hold{ID: limiter.HoldIDOf(nil), TTLNs: heldSec}
		if got := r.decides(i, h, 0, 0); l.constant == limiter.ByRules {
			r.compare(i, got, 0)
		}
	case 1:
		if got := r.decides(i, nil, 0, 0); l.constant == limiter.ByRules {
			r.compare(i, got, 0)
		}
	default:
		if len(r.calls) > 0 {
			of := pick(r.Rand, r.calls)
			r.finds(i, of.id)
		}
	}
}

func (r *heldRun) finds(i int, id limiter.HoldID) {
	var step limiter.FindHold
	r.does(i, true, func(s *limiter.State) (o outcome) {
		step = limiter.FindHold{ID: id}
		o.changed, o.err = step.Do(s, r.nowNs)
		o.state, o.held = step.State, step.LeftNs
		return o
	})
	var want limiter.FindHold
	if h := r.pairs[i].model.find(id); h != nil {
		want = limiter.FindHold{State: limiter.OpenHold, Call: h.call, LeftNs: max(0, h.endNs-r.nowNs)}
		if h.overdue {
			want.State = limiter.OverdueHold
		}
	}
	if step.State != want.State || want.State != limiter.NoHold && (step.Call != want.Call || step.LeftNs != want.LeftNs) {
		r.fail("pair %d: found %+v, want %+v", i, step, want)
	}
}

// defines changes a limit.
func (r *heldRun) defines() {
	i := r.IntN(len(r.limits))
	r.limits[i] = r.heldArtist.law(r.limits[i], false)
	r.tell("limit %d: %s", i, r.limits[i])
}

// overrides begins or ends an override.
func (r *heldRun) overrides() {
	i := r.IntN(len(r.pairs))
	p := r.pairs[i]
	if p.override != nil && r.often(60) {
		p.override = nil
		r.tell("no override of pair %d", i)
		return
	}
	p.override = r.heldArtist.law(r.law(i), true)
	r.tell("override of pair %d: %s", i, p.override)
}

// forgets is DEL, and eviction.
func (r *heldRun) forgets() {
	i := r.IntN(len(r.pairs))
	r.touched[i] = true
	p := r.pairs[i]
	r.tell("pair %d is gone", i)
	p.model, p.s, p.alone, p.ended, p.changedNs = newHeldKey(), limiter.State{}, limiter.State{}, endedSum{}, 0
	r.done["gone"]++
}

// snapshot keeps what a disk, or another server, has.
func (r *heldRun) snapshot() {
	p := pick(r.Rand, r.pairs)
	of := heldSnapshot{model: p.model.clone(), ended: p.ended}
	if p.alone.ExpiresNs > r.nowNs {
		of.state = limiter.AppendState(nil, &p.alone)
	}
	if p.snapshots = append(p.snapshots, of); len(p.snapshots) > 4 {
		p.snapshots = p.snapshots[1:]
	}
}

// crashes reads a pair again: as it was, or as it was before the last changes.
func (r *heldRun) crashes() {
	i := r.IntN(len(r.pairs))
	r.touched[i] = true
	p := r.pairs[i]
	of := heldSnapshot{model: p.model, ended: p.ended}
	if p.alone.ExpiresNs > r.nowNs {
		of.state = limiter.AppendState(nil, &p.alone)
	}
	if len(p.snapshots) > 0 && r.often(50) {
		of = pick(r.Rand, p.snapshots)
		of.model = of.model.clone()
		r.tell("pair %d is as before", i)
	}
	p.model, p.s, p.alone, p.ended, p.changedNs = of.model, limiter.State{}, limiter.State{}, of.ended, 0
	if len(of.state) > 0 {
		for _, s := range []*limiter.State{&p.s, &p.alone} {
			read, rest, ok := limiter.ReadState(bytes.Clone(of.state))
			if !ok || len(rest) > 0 {
				r.fail("pair %d is not read again: %x", i, of.state)
			}
			*s = read
		}
	}
	r.done["crashed"]++
}

// shifts moves a pair by the clock of another server.
func (r *heldRun) shifts() {
	i := r.IntN(len(r.pairs))
	r.touched[i] = true
	p := r.pairs[i]
	p.model.tidy(r.nowNs)
	byNs := -r.Int64N(2 * heldSec) // what has expired stays so
	if p.s.ExpiresNs <= r.nowNs {
		return
	}
	r.tell("pair %d is shifted by %d ns", i, byNs)
	p.s, p.alone = limiter.Shifted(p.s, byNs), limiter.Shifted(p.alone, byNs)
	p.model.shift(byNs)
	p.ended.spent = p.ended.spent.shift(byNs) // what is returned later is of a hold that is shifted
	p.changedNs = 0
}

// verify compares all of a pair with its model.
func (r *heldRun) verify(i int) {
	p := r.pairs[i]
	p.model.tidy(r.nowNs)
	for n, s := range []*limiter.State{&p.s, &p.alone} {
		if err := limiter.Valid(s); s.ExpiresNs > r.nowNs && err != nil {
			r.fail("pair %d: state %d: %v", i, n, err)
		}
		b := limiter.AppendState(nil, s)
		own, rest, ok := limiter.ReadState(b)
		if s.ExpiresNs > r.nowNs && (!ok || len(rest) > 0 || !bytes.Equal(limiter.AppendState(nil, &own), b)) {
			r.fail("pair %d: state %d is not encoded as it is read", i, n)
		}
		if f, words, ok := limiter.Pack(s); ok && s.ExpiresNs > r.nowNs && !bytes.Equal(f.AppendPayload(nil, s.ExpiresNs, words), s.Payload) {
			r.fail("pair %d: state %d is not packed as it is", i, n)
		}
		r.verifyHolds(i, s)
		for j := range p.model.holds {
			if h := &p.model.holds[j]; s.ExpiresNs < h.endNs+heldDay {
				r.fail("pair %d: state %d ends %d ns before the day of a hold", i, n, h.endNs+heldDay-s.ExpiresNs)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(p.model.states)) {
			if of := p.model.states[id]; of.rule.isFunnel() {
				r.verifyFunnel(i, s, of)
			} else {
				r.verifyWindow(i, s, of)
			}
		}
	}
}

// verifyHolds compares what is known of holds: of some of them, and of their number after a change.
func (r *heldRun) verifyHolds(i int, s *limiter.State) {
	p := r.pairs[i]
	for range min(3, len(p.model.holds)) {
		h := pick(r.Rand, p.model.holds)
		own, find := copied(s), limiter.FindHold{ID: h.id}
		want := limiter.OpenHold
		if h.overdue {
			want = limiter.OverdueHold
		}
		if changed, err := find.Do(&own, r.nowNs); changed || err != nil || find.State != want || find.Call != h.call || find.LeftNs != max(0, h.endNs-r.nowNs) {
			r.fail("pair %d: found %+v, %t, %v, want %+v", i, find, changed, err, h)
		}
	}
	var want []limiter.Held
	for i := range p.model.holds {
		h := &p.model.holds[i]
		want = append(want, limiter.Held{BeganNs: h.beganNs, EndNs: h.endNs, Units: h.units, Overdue: h.overdue, Charge: h.charge})
	}
	if got := limiter.LookAtHolds(s, r.nowNs); !slices.Equal(got, want) {
		r.fail("pair %d: holds %+v, want %+v", i, got, want)
	}
	if open, overdue := limiter.HoldsOf(&p.alone); p.changedNs == r.nowNs {
		if wantOpen, wantOverdue := p.model.known(); open != wantOpen || overdue != wantOverdue {
			r.fail("pair %d has %d open and %d overdue holds, want %d and %d\n%s", i, open, overdue, wantOpen, wantOverdue, r.text(i))
		}
		if !maps.Equal(p.ended.spent, p.model.spent) {
			r.fail("pair %d has spent %v, want %v", i, p.ended.spent, p.model.spent)
		}
	}
}

// quiet reports whether no hold of a pair ends within a time.
func (k *heldKey) quiet(nowNs, untilNs int64) bool {
	for i := range k.holds {
		if endNs := k.holds[i].endNs; endNs > nowNs && endNs <= untilNs || endNs+heldDay > nowNs && endNs+heldDay <= untilNs {
			return false
		}
	}
	return true
}

// sees returns what a rule sees of a state.
func (r *heldRun) sees(s *limiter.State, rule limiter.NamedRule, atNs int64) funnel.Result {
	rule.Rule.Unit = funnel.Milliseconds
	before := limiter.AppendState(nil, s)
	got := rule.Look(s, atNs, 0)
	if !bytes.Equal(before, limiter.AppendState(nil, s)) {
		r.fail("a look by a rule has changed the state")
	}
	return got
}

// verifyFunnel compares a debt, to the nanosecond: where its milliseconds change.
func (r *heldRun) verifyFunnel(i int, s *limiter.State, of *heldState) {
	debtNs, slackNs := of.Seen(r.nowNs, of.rule.intervalNs, of.rule.toleranceNs())
	for _, byNs := range []int64{0, debtNs%heldMs + slackNs, debtNs%heldMs - slackNs - 1} {
		atNs := r.nowNs + byNs
		if byNs < 0 || !r.pairs[i].model.quiet(r.nowNs, atNs) {
			continue
		}
		got := r.sees(s, of.rule.NamedRule, atNs).ResetAfter
		least, most := inMs(debtNs-byNs-slackNs), inMs(debtNs-byNs+slackNs)
		if got < least || got > most {
			r.fail("pair %d: %s: a debt of %d ms in %d ns, want %d to %d: %d ns now\n%s", i, of.rule.id, got, byNs, least, most, debtNs, r.text(i))
		}
	}
}

func inMs(ns int64) int64 { return max(0, (ns+heldMs-1)/heldMs) }

const probeUnits = int64(1) << 61

// verifyWindow compares a window's units, by a rule of which as many more are allowed.
func (r *heldRun) verifyWindow(i int, s *limiter.State, of *heldState) {
	k := r.pairs[i].model
	probe := of.rule
	most := probeUnits
	if of.rule.kind == limiter.SlidingWindow {
		most = of.rule.capacity
	}
	probe.Rule.Packed[0] = most
	ends := []int64{r.nowNs}
	if of.rule.kind == limiter.ApproxWindow {
		ends = append(ends, r.nowNs+r.Int64N(of.periodNs), k.untilNs(of.rule.id)-1)
	}
	for _, atNs := range ends {
		if atNs < r.nowNs || !k.quiet(r.nowNs, atNs) {
			continue
		}
		got, want := most-r.sees(s, probe.NamedRule, atNs).Remaining, k.used(&probe, atNs)
		if got != min(want, most) {
			r.fail("pair %d: %s counts %d units in %d ns, want %d\n%s", i, of.rule.id, got, atNs-r.nowNs, want, r.text(i))
		}
	}
}

// text is the model of a pair.
func (r *heldRun) text(i int) string {
	var b strings.Builder
	k := r.pairs[i].model
	for _, id := range slices.Sorted(maps.Keys(k.states)) {
		s := k.states[id]
		fmt.Fprintf(&b, "%s: era %d, ends %d, counts %d, start %d, period %d, flow %+v\n", id, s.era, min(s.endNs-heldT0, math.MaxInt64), s.counts, s.startNs-heldT0, s.periodNs, s.Flow)
	}
	for n := range k.holds {
		h := &k.holds[n]
		fmt.Fprintf(&b, "hold %d %x: ends %d, units %d, charge %t, overdue %t, %v\n", h.number, h.id[:2], h.endNs-heldT0, h.units, h.charge, h.overdue, h.shares)
	}
	return b.String()
}

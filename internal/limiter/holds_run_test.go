package limiter_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// heldPair is a key of a limit: its model, its state, and one that is as if nobody had looked at it.
type heldPair struct {
	limit     int // of the key
	override  *law
	model     *heldKey
	s, alone  limiter.State
	ended     endedSum // as the state has told
	snapshots []heldSnapshot
	changedNs int64 // when it last changed
}

// heldSnapshot is what a disk or another server has of a key.
type heldSnapshot struct {
	model *heldKey
	state []byte // empty for none
	ended endedSum
}

// endedSum is what a state has told of holds that ended, and of what was spent, by the time.
type endedSum struct {
	limiter.Ended
	spent spending
}

func (e *endedSum) add(of *limiter.Notes) {
	e.Returned += of.Returned
	e.Charged += of.Charged
	e.Dropped += of.Dropped
	for by := range of.Spent {
		e.spent = e.spent.with(by.AtNs, by.Units)
	}
}

// spending is units by the time for which they were spent. It is not changed, but replaced.
type spending map[int64]int64

func (s spending) with(atNs, units int64) spending {
	own := maps.Clone(s)
	if own == nil {
		own = spending{}
	}
	if own[atNs] += units; own[atNs] == 0 {
		delete(own, atNs)
	}
	return own
}

func (s spending) shift(byNs int64) (shifted spending) {
	for atNs, units := range s {
		shifted = shifted.with(atNs+byNs, units)
	}
	return shifted
}

// heldCall is a call of several pairs.
type heldCall struct {
	id    limiter.HoldID
	call  limiter.HoldCall
	pairs []int
	units []int64
}

// heldRun is a random sequence of steps.
type heldRun struct {
	*heldArtist
	t      *testing.T
	nowNs  int64
	limits []*law
	pairs  []*heldPair
	calls  []heldCall
	told   []string
	next   uint64
	done   map[string]int

	touched map[int]bool // pairs, by the last step
}

func newHeldRun(t *testing.T, a *heldArtist, done map[string]int) *heldRun {
	r := &heldRun{heldArtist: a, t: t, nowNs: heldT0 + a.Int64N(400*heldDay), done: done, touched: map[int]bool{}}
	for i := range 2 {
		r.limits = append(r.limits, a.law(nil, false))
		r.tell("limit %d: %s", i, r.limits[i])
	}
	for i := range 4 {
		r.pairs = append(r.pairs, &heldPair{limit: i % 2, model: newHeldKey()})
	}
	return r
}

func (l *law) String() string {
	var all []string
	for i := range l.rules {
		r := &l.rules[i]
		all = append(all, fmt.Sprintf("%s %s capacity %d interval %d period %d s", r.id, r.every, r.capacity, r.intervalNs, r.periodNs/heldSec))
	}
	return fmt.Sprintf("constant %d, shadow %t, %s", l.constant, l.shadow, strings.Join(all, "; "))
}

func (r *heldRun) tell(format string, of ...any) {
	if r.told = append(r.told, fmt.Sprintf("%d ns: ", r.nowNs-heldT0)+fmt.Sprintf(format, of...)); len(r.told) > 400 {
		r.told = r.told[200:]
	}
}

func (r *heldRun) fail(format string, of ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\n%s\n%s", r.class, strings.Join(r.told, "\n"), fmt.Sprintf(format, of...))
}

// law is what decides a pair.
func (r *heldRun) law(i int) *law {
	if o := r.pairs[i].override; o != nil {
		return o
	}
	return r.limits[r.pairs[i].limit]
}

func copied(s *limiter.State) limiter.State {
	return limiter.State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
}

// outcome is what a step answers.
type outcome struct {
	result  funnel.Result
	changed bool
	err     error
	state   limiter.HoldState
	held    int64
	debited int64
}

// does does a step on both states of a pair. One keeps what a step without a change leaves, the other one
// what it had before, as a store may do either. A look is not done on the other one.
func (r *heldRun) does(i int, isLook bool, step func(s *limiter.State) outcome) outcome {
	p := r.pairs[i]
	r.touched[i] = true
	if p.alone.ExpiresNs <= r.nowNs { // nobody counts what is gone
		p.ended, p.model.Ended, p.model.spent = endedSum{}, limiter.Ended{}, nil
	}
	before := copied(&p.s)
	got := step(&p.s)
	if got.changed && (isLook || got.err != nil) {
		r.fail("a look, or an error, has changed pair %d: %+v", i, got)
	}
	if live := p.s.ExpiresNs > r.nowNs; !got.changed && live && (p.s.ExpiresNs != before.ExpiresNs || len(p.s.Payload) > len(before.Payload)) {
		r.fail("pair %d has changed, unsaid: it had %d bytes until %d and has %d until %d", i, len(before.Payload), before.ExpiresNs-heldT0, len(p.s.Payload), p.s.ExpiresNs-heldT0)
	}
	other := copied(&p.alone)
	var notes limiter.Notes
	other.Notes = &notes
	if also := step(&other); also != got {
		r.fail("pair %d answers %+v, and without looks %+v", i, got, also)
	}
	if got.changed && !isLook {
		p.ended.add(&notes)
		other.Notes = nil
		if p.alone, p.changedNs = other, r.nowNs; p.ended.Ended != p.model.Ended {
			r.fail("pair %d has counted %+v, want %+v", i, p.ended.Ended, p.model.Ended)
		}
	}
	return got
}

// decides decides a request of a pair.
func (r *heldRun) decides(i int, h *limiter.Hold, units int64, flags limiter.Flags) outcome {
	by := r.law(i).by
	if h != nil {
		by = by.Holding(h)
	}
	rule := limiter.OfNamed(by)
	rule.Flags = flags
	again := copied(&r.pairs[i].s)
	before := bytes.Clone(again.Payload)
	var direct funnel.Result
	_, _, ok := rule.DecideAgain(again.Payload, again.ExpiresNs, r.nowNs, units, &direct)
	if !ok && !bytes.Equal(before, again.Payload) {
		r.fail("a payload that is not decided in place has changed")
	}
	got := r.does(i, units == 0, func(s *limiter.State) (o outcome) {
		o.result, o.changed, o.err = rule.Decide(s, r.nowNs, units)
		return o
	})
	if ok && (got.err != nil || direct != got.result) {
		r.fail("pair %d is decided in place as %+v, else as %+v", i, direct, got)
	}
	return got
}

// reserve holds units of some pairs, or of none.
func (r *heldRun) reserve() {
	r.next++
	of := heldCall{call: limiter.HoldCall{Pairs: r.Uint32(), All: r.Uint32()}, id: limiter.HoldIDOf(fmt.Append(nil, r.next))}
	taken := len(r.calls) > 0 && r.often(5)
	if taken {
		of.id = pick(r.Rand, r.calls).id
	}
	h := &limiter.Hold{ID: of.id, Call: of.call, TTLNs: r.ttlNs(), Charge: r.often(40)}
	of.pairs = r.Perm(len(r.pairs))[:1+r.IntN(3)]
	of.pairs = slices.DeleteFunc(of.pairs, func(i int) bool { return r.law(i).exact })
	for _, i := range of.pairs {
		of.units = append(of.units, r.units(r.law(i)))
	}
	if len(of.pairs) == 0 {
		return
	}
	r.tell("reserve %v of pairs %v for %d ns, charge %t, id %x", of.units, of.pairs, h.TTLNs, h.Charge, of.id[:2])
	all := true
	saved := make([]heldPair, len(r.pairs))
	for i, p := range r.pairs {
		saved[i] = *p
		saved[i].s, saved[i].alone, saved[i].model = copied(&p.s), copied(&p.alone), p.model.clone()
	}
	for n, i := range of.pairs {
		all = r.holds(i, h, of.units[n]) && all
	}
	if !all { // nothing is kept of any
		for i := range saved {
			*r.pairs[i] = saved[i]
		}
		return
	}
	if !taken {
		r.calls = append(r.calls, of)
	}
	if len(r.calls) > 40 {
		r.calls = r.calls[1:]
	}
}

// holds holds units of a pair, and reports whether the request was allowed.
func (r *heldRun) holds(i int, h *limiter.Hold, units int64) bool {
	k, l := r.pairs[i].model, r.law(i)
	k.tidy(r.nowNs)
	got := r.decides(i, h, units, 0)
	if l.constant != limiter.ByRules {
		if got.changed || got.err != nil {
			r.fail("a constant holds %+v", got)
		}
		return !got.result.Limited
	}
	if k.find(h.ID) != nil {
		if !errors.Is(got.err, limiter.ErrHoldTaken) {
			r.fail("a taken id: %+v", got)
		}
		return false
	}
	denied := r.compare(i, got, units)
	if denied && !l.shadow {
		r.done["denied"]++
		return false
	}
	k.next++
	of := held{number: k.next, id: h.ID, call: h.Call, beganNs: r.nowNs, endNs: r.nowNs + h.TTLNs, units: units, charge: h.Charge, shares: map[string]share{}}
	k.charges(l, r.nowNs, units, &of)
	k.holds = append(k.holds, of)
	k.spends(r.nowNs, units)
	r.done["held"]++
	if denied {
		r.done["held by a shadow"]++
	}
	return true
}

// compare compares a decision that is no debit, and returns whether a rule denied it.
func (r *heldRun) compare(i int, got outcome, units int64) (denied bool) {
	k, l := r.pairs[i].model, r.law(i)
	denied, unsure := k.denies(l, r.nowNs, units)
	is := got.result.Marks.Denied() != 0
	if got.err != nil || is != denied && !unsure || got.result.Limited != (is && !l.shadow) {
		r.fail("pair %d, by %s: %d units: got %+v, want denied %t\n%s", i, l, units, got, denied, r.text(i))
	}
	if is && units != 0 {
		k.rebase(l, r.nowNs)
	}
	return is
}

// check is a request of no hold.
func (r *heldRun) check(units int64) {
	i := r.IntN(len(r.pairs))
	k, l := r.pairs[i].model, r.law(i)
	debit := units > 0 && r.often(25) && !l.exact
	if l.exact {
		units = max(units, 0)
	}
	flags := limiter.Flags(0)
	if debit {
		flags = limiter.Debit
	}
	r.tell("check %d of pair %d, debit %t", units, i, debit)
	k.tidy(r.nowNs)
	if debit {
		r.debits(i, units)
		return
	}
	got := r.decides(i, nil, units, flags)
	switch {
	case l.constant != limiter.ByRules:
	case units < 0:
		k.refunds(l, r.nowNs, -units)
	default:
		if denied := r.compare(i, got, units); !denied && units > 0 {
			k.charges(l, r.nowNs, units, nil)
		}
	}
}

func (r *heldRun) debits(i int, units int64) {
	got := r.decides(i, nil, units, limiter.Debit)
	if l := r.law(i); l.constant == limiter.ByRules && units > 0 {
		if got.err != nil {
			r.fail("a debit: %+v", got)
		}
		r.pairs[i].model.charges(l, r.nowNs, units, nil)
		if got.changed { // else there is no room for it any more
			r.pairs[i].model.spends(r.nowNs, units)
		}
	}
}

func (r *heldRun) ttlNs() int64 {
	return max(heldMs, r.Int64N(pick(r.Rand, []int64{heldMs, heldSec, 12 * heldSec, 300 * heldSec, 3600 * heldSec, heldDay})+1))
}

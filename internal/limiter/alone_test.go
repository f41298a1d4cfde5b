package limiter_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/test/randtest"
)

// plainRules are the plain limiters that can hold units.
func plainRules(t testing.TB) map[string]limiter.Rule {
	t.Helper()
	minute, err := calendar.NewSet(&calendar.Wall{}, zones.Load).Find(calendar.Minute, nil, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]limiter.Rule{}
	for name, s := range map[string]limiter.Spec{
		"funnel":       {Kind: limiter.Funnel, Unit: funnel.Seconds, Reading: funnel.Capacity, Numbers: limiter.Numbers{40, 40, 60}},
		"fixed window": {Kind: limiter.FixedWindow, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{40, 60}},
		"approximate":  {Kind: limiter.ApproxWindow, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{40, 60}},
		"quota":        {Kind: limiter.Quota, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{40}, Calendar: minute},
	} {
		var r limiter.Rule
		if err := s.Build(&r); err != nil {
			t.Fatal(err)
		}
		all[name] = r
	}
	return all
}

// twins are a plain limiter's key and one under the name of a limit with the same rule. After the same steps
// both give the same answers.
type twins struct {
	*rand.Rand
	t            *testing.T
	nowNs        int64
	plain, named limiter.State
	rule         limiter.Rule
	limits       [2]*limiter.NamedLimit // of the plain key, and of the named one
	held         []limiter.HoldID
	last         uint64
	done         map[string]int
}

func newTwins(t *testing.T, rng *rand.Rand, r limiter.Rule) *twins {
	named := limiter.NewNamedLimit([]limiter.NamedRule{limiter.OtherRule(r, "of a limit")}, 0)
	named.Rules[0].Rule.Unit = r.Unit
	return &twins{
		Rand: rng, t: t, nowNs: heldT0, rule: r, limits: [2]*limiter.NamedLimit{limiter.Alone(r), named}, done: map[string]int{},
	}
}

// request asks both keys for units, the plain one by its own limiter.
func (w *twins) request() {
	units := []int64{0, 1, 1, 5, 20, 41, -3}[w.IntN(7)]
	rule, named := w.rule, limiter.OfNamed(w.limits[1])
	if units > 0 && w.IntN(4) == 0 {
		rule.Flags, named.Flags = limiter.Debit, limiter.Debit
	}
	named.Unit = rule.Unit
	got, changed, err := rule.Decide(&w.plain, w.nowNs, units)
	want, _, wantErr := named.Decide(&w.named, w.nowNs, units)
	want.Marks, got.Marks = 0, 0
	if got != want || err != nil || wantErr != nil {
		w.t.Fatalf("%d units: %+v, %t, %v, want %+v, %v", units, got, changed, err, want, wantErr)
	}
	w.done[fmt.Sprint("limited ", got.Limited)]++
}

func (w *twins) hold() {
	w.last++
	h := &limiter.Hold{ID: limiter.HoldIDOf(fmt.Appendf(nil, "%d", w.last)), TTLNs: w.Int64N(20 * heldSec), New: true, InWindow: w.IntN(2) == 0}
	units := 1 + w.Int64N(15)
	var results [2]funnel.Result
	for i, s := range []*limiter.State{&w.plain, &w.named} {
		r := limiter.OfNamed(w.limits[i].Holding(h))
		r.Unit = w.rule.Unit
		var err error
		if results[i], _, err = r.Decide(s, w.nowNs, units); err != nil {
			w.t.Fatal(err)
		}
		results[i].Marks = 0
	}
	if results[0] != results[1] {
		w.t.Fatalf("holding %d: %+v, want %+v", units, results[0], results[1])
	}
	if !results[0].Limited {
		w.held = append(w.held, h.ID)
		w.done["held"]++
	}
}

func (w *twins) settle() {
	if len(w.held) == 0 {
		return
	}
	i := w.IntN(len(w.held))
	id := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	used := w.Int64N(20)
	var steps [2]limiter.Settle
	for i, s := range []*limiter.State{&w.plain, &w.named} {
		steps[i] = limiter.Settle{Rule: limiter.OfNamed(w.limits[i]), ID: id, Used: used}
		if _, err := steps[i].Do(s, w.nowNs); err != nil {
			w.t.Fatal(err)
		}
		steps[i].Rule, steps[i].Result = limiter.Rule{}, funnel.Result{}
	}
	if steps[0] != steps[1] {
		w.t.Fatalf("settling %d: %+v, want %+v", used, steps[0], steps[1])
	}
	w.done[fmt.Sprint("settled ", steps[0].State)]++
}

// verify checks the form of the plain key: with holds it is a named limit's, and else its own.
func (w *twins) verify() {
	for _, s := range []*limiter.State{&w.plain, &w.named} {
		if s.ExpiresNs > w.nowNs {
			b := limiter.AppendState(nil, s)
			if again, rest, ok := limiter.ReadState(b); !ok || len(rest) > 0 || !bytes.Equal(limiter.AppendState(nil, &again), b) {
				w.t.Fatalf("%+v is not read again", s)
			}
		}
	}
	if w.plain.ExpiresNs <= w.nowNs {
		return
	}
	open, overdue := limiter.HoldsOf(&w.plain)
	if plain := w.plain.Kind == w.rule.Kind; plain != (open+overdue == 0) {
		w.t.Fatalf("a state of %s with %d open and %d overdue holds", w.plain.Kind, open, overdue)
	}
}

// TestAloneIsAsNamed: a plain limiter's key with holds counts as the key of a limit with its rule.
func TestAloneIsAsNamed(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t, rand.Uint64())
	for name, rule := range plainRules(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwins(t, rand.New(rand.NewPCG(seed, 1)), rule)
			for range 20_000 {
				switch w.IntN(10) {
				case 0, 1, 2, 3:
					w.request()
				case 4, 5:
					w.hold()
				case 6, 7:
					w.settle()
				case 8:
					w.nowNs += w.Int64N(5 * heldSec)
				default:
					if w.IntN(50) == 0 {
						w.nowNs += w.Int64N(2 * heldDay)
						w.held = w.held[:0]
					}
				}
				w.verify()
			}
			for _, what := range []string{"limited true", "limited false", "held", "settled 0", "settled 1", "settled 2"} {
				if what != "settled 0" && w.done[what] == 0 {
					t.Errorf("none was %s: %v", what, w.done)
				}
			}
		})
	}
}

// TestAloneKeepsItsForm: the state of a plain limiter becomes a named limit's with its first hold, and is the
// same again when that is settled as if it had been charged.
func TestAloneKeepsItsForm(t *testing.T) {
	t.Parallel()
	for name, rule := range plainRules(t) {
		limit := limiter.Alone(rule)
		var s, without limiter.State
		decide := func(s *limiter.State, units int64) funnel.Result {
			result, _, err := rule.Decide(s, heldT0, units)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return result
		}
		decide(&s, 3)
		decide(&without, 3)
		h := &limiter.Hold{ID: limiter.HoldIDOf([]byte("a")), TTLNs: heldSec, New: true}
		by := limiter.OfNamed(limit.Holding(h))
		if _, changed, err := by.Decide(&s, heldT0, 10); !changed || err != nil || s.Kind != limiter.Named {
			t.Fatalf("%s: %t, %v, %+v", name, changed, err, s)
		}
		if left := decide(&s, 0).Remaining; left != 27 {
			t.Errorf("%s: with 3 charged and 10 held %d are left", name, left)
		}
		settle := limiter.Settle{Rule: limiter.OfNamed(limit), ID: h.ID, Used: 4}
		if changed, err := settle.Do(&s, heldT0); !changed || err != nil || settle.State != limiter.OpenHold {
			t.Fatalf("%s: settled %t, %v, %+v", name, changed, err, settle)
		}
		decide(&without, 4)
		if !bytes.Equal(limiter.AppendState(nil, &s), limiter.AppendState(nil, &without)) {
			t.Errorf("%s: %+v, want %+v", name, s, without)
		}
	}
}

// TestAloneDebits: a debit by the limit of a plain key leaves its form, and so does a settle without a hold.
func TestAloneDebits(t *testing.T) {
	t.Parallel()
	for name, rule := range plainRules(t) {
		var s, want limiter.State
		by := limiter.OfNamed(limiter.Alone(rule))
		by.Flags = limiter.Debit
		plain := rule
		plain.Flags = limiter.Debit
		for range 2 { // absent, and there
			_, _, err := by.Decide(&s, heldT0, 50)
			_, _, plainErr := plain.Decide(&want, heldT0, 50)
			if err != nil || plainErr != nil || !bytes.Equal(limiter.AppendState(nil, &s), limiter.AppendState(nil, &want)) {
				t.Errorf("%s: %+v, %v, want %+v, %v", name, s, err, want, plainErr)
			}
		}
		settle := limiter.Settle{Rule: by, ID: limiter.HoldIDOf(nil), Used: 4}
		if changed, err := settle.Do(&s, heldT0); changed || err != nil || settle.State != limiter.NoHold {
			t.Errorf("%s: settled %t, %v, %+v", name, changed, err, settle)
		}
	}
}

// TestAloneCountsDenied: with CountDenied, a window that has holds counts denied requests, too.
func TestAloneCountsDenied(t *testing.T) {
	t.Parallel()
	rule := plainRules(t)["quota"]
	var s limiter.State
	by := limiter.OfNamed(limiter.Alone(rule).Holding(&limiter.Hold{ID: limiter.HoldIDOf(nil), TTLNs: heldSec, New: true}))
	if _, _, err := by.Decide(&s, heldT0, 10); err != nil {
		t.Fatal(err)
	}
	rule.Flags = limiter.CountDenied
	if r, changed, err := rule.Decide(&s, heldT0, 31); !r.Limited || !changed || err != nil {
		t.Fatalf("31 of 30: %+v, %t, %v", r, changed, err)
	}
	if r, _, err := rule.Decide(&s, heldT0, 1); !r.Limited || err != nil {
		t.Errorf("1 after 41 of 40: %+v, %v", r, err)
	}
}

// TestAloneIsOfItsKind: other kinds' keys have no holds, and a limit's key is none of a plain limiter's.
func TestAloneIsOfItsKind(t *testing.T) {
	t.Parallel()
	rules := plainRules(t)
	for name, rule := range rules {
		for of, other := range rules {
			if name == of {
				continue
			}
			var s limiter.State
			if _, _, err := other.Decide(&s, heldT0, 1); err != nil {
				t.Fatal(err)
			}
			by := limiter.OfNamed(limiter.Alone(rule).Holding(&limiter.Hold{ID: limiter.HoldIDOf(nil), TTLNs: heldSec, New: true}))
			if _, changed, err := by.Decide(&s, heldT0, 1); changed || !errors.Is(err, limiter.ErrWrongType) {
				t.Errorf("%s on a key of %s: %t, %v", name, of, changed, err)
			}
		}
		var s limiter.State
		by := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{limiter.OtherRule(rule, "x")}, 0))
		if _, _, err := by.Decide(&s, heldT0, 1); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := rule.Decide(&s, heldT0, 1); changed || !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("%s on a limit's key: %t, %v", name, changed, err)
		}
	}
}

package limiter

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/randtest"
)

// budgetLimit is a limit of every kind that can be debited: 100 units each.
func budgetLimit(t *testing.T) *NamedLimit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Capacity, 100, 100, 1000)
	if err != nil {
		t.Fatal(err)
	}
	rules := []NamedRule{PlainRule(l, 1000*int64(1e9))}
	for _, k := range []Kind{FixedWindow, ApproxWindow} {
		var r Rule
		spec := Spec{Kind: k, Numbers: Numbers{100, 1000}, Unit: funnel.WholeSeconds}
		if err := spec.Build(&r); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, OtherRule(r, k.String()))
	}
	return NewNamedLimit(rules, 0)
}

// holder drives a key of a limit.
type holder struct {
	t     *testing.T
	n     *NamedLimit
	s     State
	nowNs int64
}

func (h *holder) check(quantity int64) funnel.Result {
	h.t.Helper()
	r := OfNamed(h.n)
	result, _, err := r.Decide(&h.s, h.nowNs, quantity)
	h.valid(err)
	return result
}

func (h *holder) valid(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	if h.s.ExpiresNs > h.nowNs && Valid(&h.s) != nil {
		h.t.Fatalf("not valid: %v", h.s)
	}
	b := AppendState(nil, &h.s)
	if again, rest, ok := ReadState(b); h.s.ExpiresNs > h.nowNs && (!ok || len(rest) > 0 || !bytes.Equal(AppendState(nil, &again), b)) {
		h.t.Fatal("it is read as another state")
	}
}

func (h *holder) hold(id string, units, ttlNs int64, charge bool) funnel.Result {
	h.t.Helper()
	r := OfNamed(h.n.Holding(&Hold{ID: HoldIDOf([]byte(id)), Call: HoldCall{1, 2}, TTLNs: ttlNs, Charge: charge}))
	result, _, err := r.Decide(&h.s, h.nowNs, units)
	h.valid(err)
	return result
}

func (h *holder) settle(id string, used int64, want HoldState) {
	h.t.Helper()
	q := Settle{Rule: OfNamed(h.n), ID: HoldIDOf([]byte(id)), Pairs: 1, Used: used}
	_, err := q.Do(&h.s, h.nowNs)
	if h.valid(err); q.State != want {
		h.t.Fatalf("%s: got %d, want %d", id, q.State, want)
	}
}

// left expects the units that remain by every rule.
func (h *holder) left(want ...int64) {
	h.t.Helper()
	for i := range h.n.Rules {
		if got := h.n.Look(i, &h.s, h.nowNs, 0).Remaining; got != want[min(i, len(want)-1)] {
			h.t.Errorf("rule %d: %d units remain, want %d", i, got, want[min(i, len(want)-1)])
		}
	}
	h.check(0)
	for i := range h.n.Rules {
		if got := h.n.Look(i, &h.s, h.nowNs, 0).Remaining; got != want[min(i, len(want)-1)] {
			h.t.Errorf("rule %d after a look: %d units remain, want %d", i, got, want[min(i, len(want)-1)])
		}
	}
}

func TestHoldAndSettle(t *testing.T) {
	const second = int64(1e9)
	h := &holder{t: t, n: budgetLimit(t), nowNs: 1_700_000_000 * second}
	h.hold("a", 30, 60*second, false)
	h.left(70)
	h.check(10)
	h.left(60)
	h.hold("b", 20, 90*second, true)
	h.left(40)
	h.settle("a", 5, OpenHold)
	h.left(65)
	h.settle("a", 5, NoHold)
	h.hold("a", 65, 60*second, false)
	h.left(0)
	if r := h.hold("c", 1, second, false); !r.Limited {
		t.Error("allowed")
	}
	h.settle("a", 70, OpenHold) // 5 beyond
	h.left(0)
	h.check(-30)
	h.left(25)
	h.hold("d", 25, 10*second, false)
	h.left(0)
	h.nowNs += 10 * second
	h.left(26, 25, 25)
	h.settle("d", 5, OverdueHold)
	h.left(21, 20, 20)
	h.nowNs += 80 * second
	h.left(29, 20, 20)
	h.settle("b", 5, OverdueHold)
	h.left(44, 35, 35)
	if open, overdue := HoldsOf(&h.s); open+overdue != 0 {
		t.Errorf("%d open, %d overdue", open, overdue)
	}
}

func TestWindowsBeginAnewWithHolds(t *testing.T) {
	const second = int64(1e9)
	h := &holder{t: t, n: budgetLimit(t), nowNs: 1_700_000_000 * second}
	h.hold("a", 40, 3000*second, false)
	h.nowNs += 1000 * second
	h.left(100, 100, 60)
	h.check(10)
	h.left(90, 90, 50)
	h.settle("a", 0, OpenHold)
	h.left(90, 90, 90)
	h.hold("b", 40, 3000*second, false)
	h.nowNs += 2000 * second
	h.left(100)
	h.check(1)
	h.settle("b", 0, OpenHold)
	h.left(99)
}

func TestHoldsOfShadow(t *testing.T) {
	h := &holder{t: t, n: budgetLimit(t), nowNs: 1_700_000_000 * int64(1e9)}
	h.n.Shadow = true
	if r := h.hold("a", 150, 3600*int64(1e9), false); r.Limited || r.Marks&funnel.Shadowed == 0 {
		t.Errorf("got %+v", r)
	}
	h.left(0)
	h.settle("a", 90, OpenHold)
	h.left(10)
}

func TestMaxHolds(t *testing.T) {
	h := &holder{t: t, n: budgetLimit(t), nowNs: 1_700_000_000 * int64(1e9)}
	few := *NewNamedLimit(h.n.Rules[:1], 0)
	few.Shadow = true
	h.n = &few
	var err error
	n := 0
	for ; err == nil; n++ {
		r := OfNamed(h.n.Holding(&Hold{ID: HoldID{byte(n), byte(n >> 8)}, TTLNs: 1e9}))
		_, _, err = r.Decide(&h.s, h.nowNs, 1)
	}
	if n-1 != 4096 || !errors.Is(err, ErrTooManyHolds) {
		t.Errorf("%d holds, and %v", n-1, err)
	}
	h.valid(nil)
	h.nowNs += 1e9
	h.s.Notes = &Notes{}
	h.check(1)
	if want := (Ended{Returned: 4096, Dropped: 3072}); h.s.Notes.Ended != want {
		t.Errorf("got %+v", h.s.Notes)
	}
	if open, overdue := HoldsOf(&h.s); open != 0 || overdue != 1024 {
		t.Errorf("%d open, %d overdue", open, overdue)
	}
	h.valid(nil)
	if EndNs(&h.s, h.nowNs) == math.MaxInt64 {
		t.Error("they are never forgotten")
	}
}

// TestHoldsAreAsReservations: what a funnel's holds return is what the reservations of CL.RESERVE return.
func TestHoldsAreAsReservations(t *testing.T) {
	seed := randtest.Seed(t, 50)
	for run := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, run))
		l, err := funnel.NewLimit(funnel.Capacity, 1+random.Int64N(50), 10, 1)
		if err != nil {
			t.Fatal(err)
		}
		n := NewNamedLimit([]NamedRule{PlainRule(l, int64(1e9))}, 0)
		h := &holder{t: t, n: n, nowNs: 1_700_000_000 * int64(1e9)}
		var s State // of reservations
		for step := range 200 {
			h.nowNs += random.Int64N(2e9)
			units, id := 1+random.Int64N(12), uint64(step)
			var got, want funnel.Result
			switch random.IntN(3) {
			case 0:
				r := Rule{Funnel: l, Unit: funnel.WholeSeconds}
				got = h.check(units)
				want, _, err = r.Decide(&s, h.nowNs, units)
			case 1:
				ttlNs := random.Int64N(20e9)
				o := Operation{Verb: Reserve, Unit: funnel.WholeSeconds, Funnel: l, Quantity: units, ID: id, TTLNs: ttlNs}
				got = h.hold(string(rune(id)), units, ttlNs, false)
				_, err = o.Do(&s, h.nowNs)
				want = o.Result
			default:
				id = random.Uint64N(id + 1)
				o := Operation{Verb: Commit, ID: id, Quantity: units - 1}
				_, err = o.Do(&s, h.nowNs)
				if o.Count == 1 {
					h.settle(string(rune(id)), units-1, OpenHold)
				}
			}
			got.Marks = 0
			tatNs, errTAT := s.TAT(h.nowNs)
			if err != nil || errTAT != nil || got != want {
				t.Fatalf("seed %d, run %d, step %d: got %+v, want %+v: %v %v", seed, run, step, got, want, err, errTAT)
			}
			if left := n.Look(0, &h.s, h.nowNs, 0).ResetAfter; left != funnel.WholeSeconds.Of(funnel.Since(h.nowNs, tatNs)) {
				t.Fatalf("seed %d, run %d, step %d: it is empty in %d s, want by the TAT %d", seed, run, step, left, tatNs)
			}
		}
	}
}

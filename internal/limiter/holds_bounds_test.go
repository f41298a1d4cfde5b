package limiter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// wide returns a law of rules of each algorithm that allow any units.
func wide(t *testing.T, which ...int) *law {
	t.Helper()
	a := newHeldArtist(t, rand.New(rand.NewPCG(1, 1)), class{huge: true})
	var rules []heldRule
	for _, i := range which {
		r := a.rule(i)
		for r.capacity < 1<<38 {
			r = a.rule(i)
		}
		rules = append(rules, r)
	}
	return newLaw(rules, limiter.ByRules, false, false)
}

func heldID(n int) limiter.HoldID {
	return limiter.HoldIDOf(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// hold holds units by a law.
func (l *law) hold(s *limiter.State, n int, nowNs, units, ttlNs int64, charge bool) error {
	r := limiter.OfNamed(l.by.Holding(&limiter.Hold{ID: heldID(n), Call: limiter.HoldCall{Pairs: 7, All: uint32(n)}, TTLNs: ttlNs, Charge: charge}))
	result, _, err := r.Decide(s, nowNs, units)
	if err == nil && result.Limited {
		return fmt.Errorf("limited: %+v", result)
	}
	return err
}

// settle settles a hold.
func (l *law) settle(s *limiter.State, n int, nowNs, used int64) (limiter.Settle, error) {
	step := limiter.Settle{Rule: limiter.OfNamed(l.by), ID: heldID(n), Pairs: 7, Used: used}
	_, err := step.Do(s, nowNs)
	return step, err
}

// TestMostHolds: a key has at most 4,096 holds and 288 KiB of them. One more holds nothing, until one is
// settled.
func TestMostHolds(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	const most, mostBytes = 4096, 288 << 10
	for _, which := range [][]int{{4}, {0}, {6}, {0, 2, 4, 6, 8, 10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		l := wide(t, which...)
		var s limiter.State
		n, err := 0, error(nil)
		for ; err == nil && n <= most; n++ {
			err = l.hold(&s, n, heldT0, 1, heldDay, false)
		}
		n--
		if open, overdue := limiter.HoldsOf(&s); !errors.Is(err, limiter.ErrTooManyHolds) || open != n || overdue > 0 {
			t.Fatalf("%v: %d of %d holds are open, then %v", which, open, n, err)
		}
		if each := len(s.Payload) / n; n < most && len(s.Payload) < mostBytes-2*each || len(s.Payload) > mostBytes+1024 {
			t.Errorf("%v: %d holds in %d bytes", which, n, len(s.Payload))
		}
		before := limiter.AppendState(nil, &s)
		if err := l.hold(&s, n, heldT0+1, 1, heldSec, false); !errors.Is(err, limiter.ErrTooManyHolds) || !bytes.Equal(limiter.AppendState(nil, &s), before) {
			t.Errorf("%v: one more: %v", which, err)
		}
		again, _, ok := limiter.ReadState(before)
		if !ok || !bytes.Equal(again.Payload, s.Payload) {
			t.Errorf("%v: they are not read again", which)
		}
		if step, err := l.settle(&s, n/2, heldT0+1, 1); err != nil || step.State != limiter.OpenHold || step.Held != 1 {
			t.Errorf("%v: settled: %+v, %v", which, step, err)
		}
		if err := l.hold(&s, n, heldT0+1, 1, heldSec, false); err != nil {
			t.Errorf("%v: one more after a settle: %v", which, err)
		}
		t.Logf("%v: %d holds in %d bytes", which, n, len(s.Payload))
	}
}

// TestMostOverdue: of overdue holds a key knows the last 1,024 for a day, and counts those that it drops.
func TestMostOverdue(t *testing.T) {
	t.Parallel()
	for _, charge := range []bool{false, true} {
		const all, most = 1500, 1024
		l := wide(t, 0, 4, 6)
		for _, atOnce := range []bool{false, true} {
			var s limiter.State
			var told endedSum
			order := rand.New(rand.NewPCG(2, 2)).Perm(all)
			for _, n := range order {
				if err := l.hold(&s, n, heldT0, 1, heldSec+int64(n), charge); err != nil {
					t.Fatal(err)
				}
			}
			for n := 0; n < all && !atOnce; n += 7 { // somebody looks, and somebody checks
				check, own := limiter.OfNamed(l.by), copied(&s)
				own.Notes = &limiter.Notes{}
				if _, changed, err := check.Decide(&own, heldT0+heldSec+int64(n), int64(n%2)); err != nil {
					t.Fatal(err)
				} else if changed {
					s = own
					told.add(s.Notes)
				}
			}
			atNs := heldT0 + heldSec + all
			for _, n := range []int{0, all - most - 1, all - most, all - 1} {
				find, want := limiter.FindHold{ID: heldID(n)}, limiter.NoHold
				if n >= all-most {
					want = limiter.OverdueHold
				}
				own := copied(&s)
				if step, err := l.settle(&own, n, atNs, 0); err != nil || step.State != want {
					t.Errorf("at once %t: hold %d is settled as %d, want %d; %v", atOnce, n, step.State, want, err)
				}
				if _, err := find.Do(&s, atNs); err != nil || find.State != want {
					t.Errorf("at once %t: hold %d is %d, want %d; %v", atOnce, n, find.State, want, err)
				}
			}
			s.Notes = &limiter.Notes{}
			if step, err := l.settle(&s, all-1, atNs, 1); err != nil || step.State != limiter.OverdueHold || charge && step.Debited != 0 || !charge && step.Debited != 1 {
				t.Errorf("settled late: %+v, %v", step, err)
			}
			told.add(s.Notes)
			s.Notes = nil
			if open, overdue := limiter.HoldsOf(&s); open > 0 || overdue != most-1 {
				t.Errorf("%d are open and %d overdue", open, overdue)
			}
			want := limiter.Ended{Returned: all, Dropped: all - most}
			if charge {
				want = limiter.Ended{Charged: all, Dropped: all - most}
			}
			if told.Ended != want {
				t.Errorf("charge %t, at once %t: counted %+v, want %+v", charge, atOnce, told, want)
			}
			for n, want := range map[int]limiter.HoldState{all - 2: limiter.OverdueHold, all - 3: limiter.NoHold} {
				find := limiter.FindHold{ID: heldID(n)}
				if _, err := find.Do(&s, heldT0+heldSec+all-3+heldDay); err != nil || find.State != want {
					t.Errorf("after a day hold %d is %d, want %d; %v", n, find.State, want, err)
				}
			}
		}
	}
}

// TestManyEndAtOnce: holds of one end are all returned then, whatever else was charged, and no nanosecond
// earlier.
func TestManyEndAtOnce(t *testing.T) {
	t.Parallel()
	l := wide(t, 0, 2, 4, 5, 6, 7, 10)
	const all, checked, lifeNs = 1000, 17, 2000
	check := limiter.OfNamed(l.by)
	var s limiter.State
	var want limiter.State // without the holds
	for n := range all {
		if err := l.hold(&s, n, heldT0+int64(n), 3, lifeNs-int64(n), n%100 == 0); err != nil {
			t.Fatal(err)
		}
		if n%60 == 0 {
			for _, of := range []*limiter.State{&s, &want} {
				if result, _, err := check.Decide(of, heldT0+int64(n), checked); err != nil || result.Limited {
					t.Fatal(result, err)
				}
			}
		}
		if n%100 == 0 {
			if _, _, err := check.Decide(&want, heldT0+int64(n), 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range l.rules {
		if early, late := l.by.Look(i, &s, heldT0+lifeNs-1, 0), l.by.Look(i, &s, heldT0+lifeNs, 0); early.Remaining >= late.Remaining {
			t.Errorf("%s: %+v, then %+v", l.rules[i].id, early, late)
		}
		got, want := l.by.Look(i, &s, heldT0+lifeNs, 0), l.by.Look(i, &want, heldT0+lifeNs, 0)
		if got != want {
			t.Errorf("%s: got %+v, want %+v", l.rules[i].id, got, want)
		}
	}
}

// TestHoldIDs: an id is of one hold while this is known, and free afterwards.
func TestHoldIDs(t *testing.T) {
	t.Parallel()
	l := wide(t, 4)
	var s limiter.State
	steps := []struct {
		atNs int64
		err  error
	}{{0, nil}, {0, limiter.ErrHoldTaken}, {heldSec - 1, limiter.ErrHoldTaken}, {heldSec, limiter.ErrHoldTaken}, {heldSec + heldDay - 1, limiter.ErrHoldTaken}, {heldSec + heldDay, nil}}
	for _, tt := range steps {
		if err := l.hold(&s, 1, heldT0+tt.atNs, 2, heldSec, false); !errors.Is(err, tt.err) {
			t.Errorf("after %d ns: %v, want %v", tt.atNs, err, tt.err)
		}
	}
	atNs := heldT0 + heldSec + heldDay
	if err := l.hold(&s, 1, atNs, 0, heldSec, false); err != nil {
		t.Errorf("a look: %v", err)
	}
	for _, want := range []limiter.HoldState{limiter.OpenHold, limiter.NoHold} {
		if step, err := l.settle(&s, 1, atNs, 1); err != nil || step.State != want {
			t.Errorf("settled: %+v, %v", step, err)
		}
	}
	if err := l.hold(&s, 1, atNs, 2, heldSec, false); err != nil {
		t.Errorf("after its settle: %v", err)
	}
	if end := atNs + heldSec + heldDay; s.ExpiresNs < end {
		t.Errorf("the key ends %d ns before the day of the hold", end-s.ExpiresNs)
	}
}

// TestHugeHolds: sums beyond 64 bits saturate, and what is settled leaves no less than what was checked.
func TestHugeHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(randtest.Seed(t, 3), 3))
	for range 300 {
		l := wide(t, 0, 2, 4, 6, 8)
		l.by.Shadow = true
		var s limiter.State
		nowNs := heldT0
		for n := range 30 {
			nowNs += rng.Int64N(heldSec)
			units := pick(rng, []int64{1, 1 << 40, 1 << 61, 1 << 62, math.MaxInt64 - 1, math.MaxInt64})
			switch rng.IntN(4) {
			case 0:
				check := limiter.OfNamed(l.by)
				check.Flags = pick(rng, []limiter.Flags{0, limiter.Debit})
				if _, _, err := check.Decide(&s, nowNs, units); err != nil {
					t.Fatal(err)
				}
			case 1:
				if _, err := l.settle(&s, rng.IntN(n+1), nowNs, units); err != nil {
					t.Fatal(err)
				}
			default:
				if err := l.hold(&s, n, nowNs, units, 1+rng.Int64N(9*heldSec), rng.IntN(2) == 0); err != nil {
					t.Fatal(err)
				}
			}
			for i := range l.rules {
				if got := l.by.Look(i, &s, nowNs, 0); got.Remaining < 0 || got.Remaining > got.Limit || got.ResetAfter < 0 {
					t.Fatalf("%s: %+v", l.rules[i].id, got)
				}
			}
			again, rest, ok := limiter.ReadState(limiter.AppendState(nil, &s))
			if s.ExpiresNs > nowNs && (!ok || len(rest) > 0 || !bytes.Equal(again.Payload, s.Payload)) {
				t.Fatal("the state is not read again")
			}
		}
	}
}

// TestLooksTellNothing: a history has the same end, whenever somebody looks in between.
func TestLooksTellNothing(t *testing.T) {
	seed := randtest.Seed(t, 4)
	for run := range uint64(60) {
		var ends []string
		for looks := range 4 {
			rng := rand.New(rand.NewPCG(seed, run))
			ends = append(ends, lookedAt(t, rng, looks))
		}
		if slices.Sort(ends); ends[0] != ends[len(ends)-1] {
			t.Fatalf("run %d: it ends as %s, or as %s", run, ends[0], ends[len(ends)-1])
		}
	}
}

// lookedAt runs a history, with looks at each step that is a multiple of a number, and just before it.
func lookedAt(t *testing.T, rng *rand.Rand, looks int) (text string) {
	t.Helper()
	l := wide(t, 0, 3, 5, 7, 9)
	var s limiter.State
	look := func(atNs int64) {
		rule := limiter.OfNamed(l.by)
		if _, changed, err := rule.Decide(&s, atNs, 0); changed || err != nil {
			t.Fatalf("a look: %t, %v", changed, err)
		}
		find := limiter.FindHold{ID: heldID(0)}
		if changed, err := find.Do(&s, atNs); changed || err != nil {
			t.Fatalf("a search: %t, %v", changed, err)
		}
	}
	nowNs := heldT0
	for n := range 120 {
		byNs := rng.Int64N(pick(rng, []int64{2, heldSec, 600 * heldSec, 3600 * heldSec}))
		if looks > 0 && n%looks == 0 {
			for range looks {
				look(nowNs + byNs/int64(looks+1))
			}
			look(nowNs + byNs)
		}
		nowNs += byNs
		units := 1 + rng.Int64N(9)
		switch rng.IntN(4) {
		case 0:
			rule := limiter.OfNamed(l.by)
			result, _, err := rule.Decide(&s, nowNs, units)
			text += fmt.Sprintln(result, err)
		case 1:
			step, err := l.settle(&s, rng.IntN(n+1), nowNs, units)
			text += fmt.Sprintln(step.State, step.Held, step.Debited, step.Result, err)
		default:
			err := l.hold(&s, n, nowNs, units, 1+rng.Int64N(1000*heldSec), rng.IntN(2) == 0)
			text += fmt.Sprintln(err)
		}
	}
	for i := range l.rules {
		text += fmt.Sprintln(l.by.Look(i, &s, nowNs, 0))
	}
	open, overdue := limiter.HoldsOf(&s)
	return text + fmt.Sprintln(open, overdue)
}

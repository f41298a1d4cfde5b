package script

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/test/racetest"
)

const ms = int64(1_000_000)

// doing is a change of a state.
type doing func(s *limiter.State, nowNs int64) outcome

type outcome struct {
	changed, limited bool
	count            int64
}

// somePeriod draws milliseconds in which a unit leaks.
func somePeriod(random *rand.Rand) int64 { return 1 + random.Int64N(9) }

// doings draws a change for a state of a kind, with times of some tens of milliseconds.
func doings(t *testing.T, random *rand.Rand, kind limiter.Kind, periodMs int64, ids *uint64) doing {
	t.Helper()
	decide := func(r limiter.Rule, quantity int64) doing {
		return func(s *limiter.State, nowNs int64) outcome {
			result, changed, err := r.Decide(s, nowNs, quantity)
			if err != nil {
				t.Fatal(err)
			}
			return outcome{changed: changed, limited: result.Limited}
		}
	}
	operate := func(o limiter.Operation) doing {
		return func(s *limiter.State, nowNs int64) outcome {
			did := o
			changed, err := did.Do(s, nowNs)
			if err != nil {
				t.Fatal(err)
			}
			return outcome{changed, did.Result.Limited, did.Count}
		}
	}
	l, errFunnel := funnel.NewLimitIn(funnel.Milliseconds, funnel.Capacity, 1+random.Int64N(6), 1, periodMs)
	w, errWindow := window.NewLimit(funnel.Milliseconds, 1+random.Int64N(6), 20)
	if err := errors.Join(errFunnel, errWindow); err != nil {
		t.Fatal(err)
	}
	quantity, id, ttlNs := random.Int64N(6)-1, random.Uint64N(6), random.Int64N(30)*ms
	rule := limiter.Rule{Kind: kind, Funnel: l, Packed: w.Packed(), Flags: limiter.Flags(random.IntN(3))}
	switch kind {
	case limiter.Bucket:
		rule.Packed = limiter.Packed{50}
	case limiter.Value:
		rule.Add(quantity)
	case limiter.Named:
		rules := []limiter.NamedRule{limiter.PlainRule(l, 1), limiter.PlainRule(l.Share(0.7), 2)}
		if random.IntN(2) == 0 {
			rules[1] = someWindow(random, w)
		}
		if random.IntN(3) == 0 {
			i, forMs := random.IntN(2), 1+random.Int64N(9)
			rules[i] = rules[i].Blocking(forMs*ms, forMs%2 == 0, fmt.Sprint(i, forMs))
		}
		if rule = limitertest.Named(rules...); rules[1].Rule.Kind != limiter.SlidingWindow && random.IntN(3) > 0 {
			return holding(t, random, rule, quantity, ids)
		}
	case limiter.Quota:
		rule.Shared = limitertest.Calendar(1e18)
	case limiter.Concurrency:
		verbs := []limiter.Verb{limiter.Acquire, limiter.Acquire, limiter.Renew, limiter.Release}
		return operate(limiter.Operation{Verb: verbs[random.IntN(4)], Max: 4, ID: id, TTLNs: ttlNs})
	case limiter.Reserving:
		rule.Kind = limiter.Funnel
		switch random.IntN(5) {
		case 0:
			*ids++
			return operate(limiter.Operation{
				Verb: limiter.Reserve, Funnel: l, Quantity: max(1, quantity), ID: *ids, TTLNs: ttlNs + ms,
			})
		case 1:
			return operate(limiter.Operation{Verb: limiter.Commit, ID: *ids - id%4, Quantity: quantity})
		case 2:
			return operate(limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: quantity, TTLNs: ttlNs})
		case 3:
			return operate(limiter.Operation{Verb: limiter.GiveBack, DebitNs: uint64(random.Int64N(9 * ms))})
		}
	default:
	}
	return decide(rule, quantity)
}

// holding draws a change of a named limit's holds.
func holding(t *testing.T, random *rand.Rand, rule limiter.Rule, quantity int64, ids *uint64) doing {
	t.Helper()
	ttlNs, id, charge := (1+random.Int64N(30))*ms, byte(*ids)-byte(random.IntN(4)), random.IntN(2) == 0
	switch random.IntN(5) {
	case 0:
		return func(s *limiter.State, nowNs int64) outcome {
			did := limiter.Settle{Rule: rule, ID: limiter.HoldID{id}, Used: max(0, quantity)}
			changed, err := did.Do(s, nowNs)
			if err != nil {
				t.Fatal(err)
			}
			return outcome{changed: changed, count: int64(did.State)}
		}
	case 1:
		return func(s *limiter.State, nowNs int64) outcome {
			did := limiter.Extend{ID: limiter.HoldID{id}, TTLNs: ttlNs}
			changed, err := did.Do(s, nowNs)
			if err != nil {
				t.Fatal(err)
			}
			return outcome{changed: changed, count: did.Outcome().Count}
		}
	default:
		*ids++
		n := rule.Shared.(*limiter.NamedLimit)
		rule = limiter.OfNamed(n.Holding(&limiter.Hold{ID: limiter.HoldID{byte(*ids)}, TTLNs: ttlNs, Charge: charge}))
		return func(s *limiter.State, nowNs int64) outcome {
			result, changed, err := rule.Decide(s, nowNs, max(1, quantity))
			if err != nil {
				t.Fatal(err)
			}
			return outcome{changed: changed, limited: result.Limited}
		}
	}
}

// someWindow draws a rule of a named limit, of some kind of window.
func someWindow(random *rand.Rand, w window.Limit) limiter.NamedRule {
	kind := []limiter.Kind{limiter.FixedWindow, limiter.SlidingWindow, limiter.ApproxWindow}[random.IntN(3)]
	return limiter.OtherRule(limiter.Rule{Kind: kind, Packed: w.Packed()}, kind.String())
}

// remove deletes the key.
func remove(s *limiter.State, nowNs int64) outcome {
	changed := s.ExpiresNs > nowNs
	*s = limiter.State{ExpiresNs: nowNs}
	return outcome{changed: changed}
}

func cloned(s *limiter.State) limiter.State {
	return limiter.State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
}

// TestPatchedStates are as if all had been done at the time of writing, or, if something expired in between,
// deny no less.
func TestPatchedStates(t *testing.T) {
	racetest.SkipAlone(t)
	for kind := range limiter.Kinds {
		t.Run(fmt.Sprintf("%d %s", kind, kind), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(kind), 3))
			equal, denies := 0, 0
			for range 8000 {
				ids := uint64(0)
				var s limiter.State
				nowNs, periodMs := t0, somePeriod(random) // of all funnels of a named limit: one call's definitions are one snapshot
				for range random.IntN(12) {
					nowNs += random.Int64N(5 * ms)
					beforeMs := periodMs
					if kind != limiter.Named || random.IntN(16) == 0 {
						beforeMs = somePeriod(random)
					}
					doings(t, random, kind, beforeMs, &ids)(&s, nowNs)
				}
				nowNs += random.Int64N(5 * ms)
				after := cloned(&s)
				var did []doing
				var outcomes []outcome
				for range 1 + random.IntN(4) {
					if kind != limiter.Named {
						periodMs = somePeriod(random)
					}
					do := doings(t, random, kind, periodMs, &ids)
					if random.IntN(8) == 0 {
						do = remove
					}
					if o := do(&after, nowNs); o.changed {
						did, outcomes = append(did, do), append(outcomes, o)
					}
				}
				if endNs := min(limiter.EndNs(&s, nowNs), limiter.EndNs(&after, nowNs)); endNs <= nowNs {
					t.Fatalf("%+v or %+v ends at %d, before %d", s, after, endNs, nowNs)
				}
				if len(did) == 0 || after.ExpiresNs <= nowNs {
					continue
				}
				c := ChangeOf(s, cloned(&after), nowNs, nowNs+random.Int64N(8*ms), func(s *limiter.State, nowNs int64) bool {
					for _, do := range did {
						if !do(s, nowNs).changed {
							return false
						}
					}
					return true
				})
				patched, written := c.To, nowNs+random.Int64N(c.LastNs-nowNs+1)
				c.Patches.Apply(&patched, written-nowNs)
				if err := limiter.Accept(&patched); err != nil {
					t.Fatalf("%+v: %v", patched, err)
				}
				want, same := cloned(&s), true
				for i, do := range did {
					same = do(&want, written) == outcomes[i] && same
				}
				if !limiter.SameBlocksAndHolds(&patched, &want) {
					t.Fatalf("%+v: other blocks would begin at the time of writing, %d ns later, as in %+v", patched, written-nowNs, want)
				}
				switch {
				case !same:
				case sameAt(&patched, &want, written):
					equal++
				default:
					denies++
					deniesAsMuch(t, random, &patched, &want, written)
				}
			}
			t.Logf("%d equal, %d deny as long", equal, denies)
			least := map[limiter.Kind]int{limiter.Reserving: 4, limiter.Concurrency: 3}[kind]
			if equal < max(least, 1)*denies {
				t.Errorf("%d equal, %d only deny as long", equal, denies)
			}
		})
	}
}

// sameAt reports whether two states are equivalent from a time on.
func sameAt(a, b *limiter.State, nowNs int64) bool {
	if a.ExpiresNs <= nowNs || b.ExpiresNs <= nowNs {
		return a.ExpiresNs <= nowNs && b.ExpiresNs <= nowNs
	}
	return a.Kind == b.Kind && a.ExpiresNs == b.ExpiresNs && bytes.Equal(a.Payload, b.Payload)
}

// deniesAsMuch tries later requests, none of which only the second state may deny.
func deniesAsMuch(t *testing.T, random *rand.Rand, s, than *limiter.State, nowNs int64) {
	t.Helper()
	kind := max(s.Kind, than.Kind)
	if s.Kind == limiter.Funnel || s.Kind == limiter.Reserving {
		for range 8 {
			nowNs += random.Int64N(6 * ms)
			a, _ := s.TAT(nowNs)
			if b, _ := than.TAT(nowNs); a < b {
				t.Fatalf("the TAT of %+v at %d is %d, and of %+v %d", s, nowNs, a, than, b)
			}
		}
		return
	}
	for range 8 {
		nowNs += random.Int64N(6 * ms)
		if kind == limiter.Concurrency {
			a, b := limiter.Operation{Verb: limiter.Holders}, limiter.Operation{Verb: limiter.Holders}
			_, errA := a.Do(s, nowNs)
			if _, errB := b.Do(than, nowNs); errA == nil && errB == nil && a.Count < b.Count {
				t.Fatalf("%d have a place, want %d", a.Count, b.Count)
			}
			continue
		}
		w, _ := window.NewLimit(funnel.Milliseconds, 1+random.Int64N(6), 20)
		r := limiter.Rule{Kind: kind, Packed: w.Packed()}
		if kind == limiter.Named {
			l, _ := funnel.NewLimitIn(funnel.Milliseconds, funnel.Capacity, 1+random.Int64N(6), 1, 1+random.Int64N(9))
			r = limitertest.Named(limiter.PlainRule(l, 1), limiter.PlainRule(l, 2), someWindow(random, w))
		}
		a, b := cloned(s), cloned(than)
		gotA, _, errA := r.Decide(&a, nowNs, 1)
		if gotB, _, errB := r.Decide(&b, nowNs, 1); errA == nil && errB == nil && gotB.Limited && !gotA.Limited {
			t.Fatalf("%+v allows at %d what %+v denies", s, nowNs, than)
		}
	}
}

// TestPatchesOfWhatIsRounded: the end of a reservation with a dated ID, which is rounded to a microsecond,
// moves with the time of writing, also where that must be before it.
func TestPatchesOfWhatIsRounded(t *testing.T) {
	const nowNs, ttlNs, us = int64(1_700_000_000_000_123_000), int64(100_000_000), 1000
	l, err := funnel.NewLimit(funnel.Burst, 9, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	o := limiter.Operation{Verb: limiter.Reserve, Funnel: l, Quantity: 2, ID: 7, Dated: true, TTLNs: ttlNs}
	before := limiter.State{Kind: limiter.Funnel, ExpiresNs: nowNs + 999_000_000_000}
	to := limiter.Shifted(before, 0)
	if done, err := o.Do(&to, nowNs); !done || err != nil {
		t.Fatal(done, err)
	}
	c := ChangeOf(before, to, nowNs, nowNs+3_600_000_000_000, func(s *limiter.State, nowNs int64) bool {
		again, _ := o.Copy()
		done, _ := again.Do(s, nowNs)
		return done
	})
	for _, sinceNs := range []int64{0, us, 300 * us, ttlNs / 2, c.LastNs - nowNs} {
		s := limiter.Shifted(c.To, 0)
		c.Patches.Apply(&s, sinceNs)
		if err := limiter.Accept(&s); err != nil {
			t.Errorf("written %d ns later: %v", sinceNs, err)
		}
		if endNs := limiter.EndNs(&s, nowNs+sinceNs); endNs != nowNs+sinceNs+ttlNs {
			t.Errorf("written %d ns later, it ends after %d ns, want %d", sinceNs, endNs-nowNs-sinceNs, ttlNs)
		}
	}
}

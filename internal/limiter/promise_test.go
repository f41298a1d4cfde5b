package limiter

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

// promised returns a random rule, and whether its reply tells when the key expires.
func promised(t *testing.T, random *rand.Rand, calendars *calendar.Set) (r Rule, tellsAll bool) {
	t.Helper()
	capacity, periodSec := 1+random.Int64N(6), 1+random.Int64N(5000)
	w, err := window.NewExactLimit(funnel.Seconds, capacity, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	spec := calendar.Spec{Every: calendar.Every(random.IntN(int(calendar.Everies))), Epoch: random.IntN(4) == 0}
	if spec.Every >= calendar.Day && !spec.Epoch {
		spec.Zone = []string{"", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"}[random.IntN(4)]
	}
	c, err := calendars.Of(spec)
	if err != nil {
		t.Fatal(err)
	}
	kinds := [...]Kind{Funnel, FixedWindow, SlidingWindow, ApproxWindow, Quota, Quota, Named}
	r = Rule{Kind: kinds[random.IntN(len(kinds))], Unit: funnel.WholeSeconds, Funnel: mustFunnel(t, capacity, 1+random.Int64N(9), periodSec), Packed: w.Packed()}
	switch r.Kind {
	case Quota:
		r.Shared = c
	case Named:
		var rules []NamedRule
		for i := range 1 + random.IntN(4) {
			one, _ := promised(t, random, calendars)
			for one.Kind == Named {
				one, _ = promised(t, random, calendars)
			}
			rules = append(rules, OtherRule(one, string(rune('a'+i))))
		}
		return OfNamed(NewNamedLimit(rules, 0.8)), false
	default:
	}
	return r, true
}

// TestPromises: a limited call is allowed when its time to retry is over, and a second before it is not;
// as many single calls pass as remain; and a key expires when it is said to be empty. The clock steps over
// boundaries of windows, those of daylight saving time among them.
func TestPromises(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 1))
	calendars := calendar.NewSet(&calendar.Wall{}, zones.Load)
	retried, passed, expired, debited := 0, 0, 0, 0
	for range 4000 {
		r, tellsAll := promised(t, random, calendars)
		nowNs := t0 + random.Int64N(int64(400*24*time.Hour))
		var s State
		for range 1 + random.IntN(12) {
			nowNs += int64(random.ExpFloat64() * float64(random.Int64N(int64(3*time.Hour))))
			r.Flags = 0
			if canDebit := r.Kind != SlidingWindow && (r.Kind != Named || r.named().Debits()); canDebit && random.IntN(4) == 0 {
				r.Flags = Debit
			}
			result := mustDecide(t, &r, &s, nowNs, 1+random.Int64N(3))
			try := func(atNs, quantity int64) (limited bool) {
				again, plain := cloneOf(&s), r
				plain.Flags = 0
				return mustDecide(t, &plain, &again, atNs, quantity).Limited
			}
			quantity := int64(1)
			if r.Flags == 0 {
				quantity = 0 // of a limited call, it is tried again below
			}
			switch {
			case result.RetryAfter >= 0 && quantity == 1:
				debited++
				if try(nowNs+result.RetryAfter*sec, 1) || result.RetryAfter > 0 && !try(nowNs+(result.RetryAfter-1)*sec, 1) {
					t.Fatalf("%+v after a debit: %+v", r, result)
				}
			case !result.Limited:
				n := min(result.Remaining, 20)
				again, plain := cloneOf(&s), r
				plain.Flags = 0
				for range n {
					if mustDecide(t, &plain, &again, nowNs, 1).Limited {
						t.Fatalf("%+v: %+v, but one of %d is limited", r, result, n)
					}
				}
				if result.Remaining == n && !mustDecide(t, &plain, &again, nowNs, 1).Limited {
					t.Fatalf("%+v: %+v, but more than %d are allowed", r, result, n)
				}
				passed++
			}
			if tellsAll && s.ExpiresNs > nowNs {
				if expired++; s.ExpiresNs > nowNs+result.ResetAfter*sec || s.ExpiresNs <= nowNs+(result.ResetAfter-1)*sec {
					t.Fatalf("%+v: %+v, but it expires after %v", r, result, time.Duration(s.ExpiresNs-nowNs))
				}
			}
		}
		quantity := 1 + random.Int64N(3)
		r.Flags = 0
		if result := mustDecide(t, &r, &s, nowNs, quantity); result.Limited && result.RetryAfter >= 0 {
			retried++
			again := cloneOf(&s)
			if mustDecide(t, &r, &again, nowNs+result.RetryAfter*sec, quantity).Limited {
				t.Fatalf("%+v: %+v, but then it is limited", r, result)
			}
			again = cloneOf(&s)
			if !mustDecide(t, &r, &again, nowNs+(result.RetryAfter-1)*sec, quantity).Limited {
				t.Fatalf("%+v: %+v, but it is allowed before", r, result)
			}
		}
	}
	if min(retried, passed, expired, debited) < 500 {
		t.Errorf("retried %d, passed %d, expired %d, debited %d", retried, passed, expired, debited)
	}
}

func cloneOf(s *State) State {
	return State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
}

package limiter

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
	"cellserver/internal/test/randtest"
)

// atMostRules are limits of every kind that requests have, for a few seconds.
func atMostRules(t *testing.T) map[string]Rule {
	t.Helper()
	all := map[string]Rule{"funnel": OfFunnel(mustFunnel(t, 7, 3, 2))}
	var rules []NamedRule
	for _, kind := range []Kind{FixedWindow, SlidingWindow, ApproxWindow, Bucket, Quota} {
		r := ruleOf(t, kind)
		if r.Packed[0] = 8; kind != Bucket && kind != Quota {
			l, err := window.NewLimit(funnel.Seconds, 8, 2)
			if err != nil {
				t.Fatal(err)
			}
			r.Packed = l.Packed()
		}
		if all[kind.String()] = r; kind != Bucket {
			r.Packed[0] = 5 + int64(kind)
			rules = append(rules, OtherRule(r, kind.String()))
		}
	}
	plain := []NamedRule{PlainRule(mustFunnel(t, 6, 6, 1), sec), PlainRule(mustFunnel(t, 9, 9, 60), 60*sec)}
	limits := map[string]*NamedLimit{
		"one rule": NewNamedLimit(plain[:1], 0.8), "two funnels": NewNamedLimit(plain, 0), "all kinds": NewNamedLimit(append(rules, plain...), 0.5),
		"a window": NewNamedLimit(rules[:1], 0), "a shadow": NewNamedLimit(append(plain[:1:1], rules[0]), 0),
		"unlimited": NewNamedLimit(nil, 0), "denied": NewNamedLimit(nil, 0), "denied by a shadow": NewNamedLimit(nil, 0),
	}
	limits["a shadow"].Shadow, limits["denied by a shadow"].Shadow = true, true
	limits["unlimited"].Constant, limits["denied"].Constant, limits["denied by a shadow"].Constant = Unlimited, Deny, Deny
	for name, n := range limits {
		all[name] = OfNamed(n)
		all[name+", precise"] = OfNamed(n.Precise(nil))
	}
	// charged at another rate, as before a reload
	all["a strange funnel"] = OfNamed(NewNamedLimit([]NamedRule{PlainRule(mustFunnel(t, 6, 5, 1), sec)}, 0))
	return all
}

// TestAtMostTakesWhatFits: it is decided for the most units that a plain request would get at that time, and
// else for one.
func TestAtMostTakesWhatFits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(randtest.Seed(t, 49), 0))
	partly, limited := 0, 0
	for name, rule := range atMostRules(t) {
		nowNs := t0
		s := rule.Full(nowNs)
		for range 3000 {
			nowNs = laterIn(r, &s, nowNs)
			if r.IntN(4) == 0 {
				beside(r, name, rule, &s, nowNs)
				continue
			}
			asked := 1 + r.Int64N(12)
			if r.IntN(30) == 0 {
				asked = math.MaxInt64 - r.Int64N(2)
			}
			want := mostOf(&rule, &s, nowNs, min(asked, 30))
			if rule.named() != nil && rule.named().Constant == Unlimited {
				want = asked
			}
			plain, most := Shifted(s, 0), rule
			most.Flags |= AtMost
			units := most.Units(&s, nowNs, asked)
			got, changed, err := most.Decide(&s, nowNs, units)
			like, likeChanged, likeErr := rule.Decide(&plain, nowNs, want)
			if units != want || got != like || changed != likeChanged || err != nil || likeErr != nil {
				t.Fatalf("%s: at most %d was decided for %d: %+v, %v, want %d: %+v", name, asked, units, got, err, want, like)
			}
			if changed && !reflect.DeepEqual(Shifted(s, 0), Shifted(plain, 0)) {
				t.Fatalf("%s: at most %d: the state is %+v, want %+v", name, asked, s, plain)
			}
			if units < asked && !got.Limited {
				partly++
			}
			if got.Limited {
				limited++
			}
		}
	}
	if partly < 1000 || limited < 1000 {
		t.Errorf("%d were given a part, %d nothing: too few", partly, limited)
	}
}

// laterIn returns a later time, often that at which something ends, or a moment beside.
func laterIn(r *rand.Rand, s *State, nowNs int64) int64 {
	switch r.IntN(8) {
	case 0:
		if end := min(s.ExpiresNs, EndNs(s, nowNs)) - 1 + r.Int64N(3); end > nowNs && end < nowNs+1000*sec {
			return end
		}
	case 1:
		return nowNs + r.Int64N(3)
	case 2:
		return nowNs + r.Int64N(3*sec)
	case 3:
		return nowNs + r.Int64N(sec/2)
	}
	return nowNs
}

// beside does something else to a state.
func beside(r *rand.Rand, name string, rule Rule, s *State, nowNs int64) {
	quantity := r.Int64N(6) - 2
	switch n := rule.named(); {
	case name == "a strange funnel" && r.IntN(3) == 0:
		other := *n
		other.Rules = []NamedRule{n.Rules[0]}
		other.Rules[0].Rule.Funnel, _ = funnel.NewLimit(funnel.Capacity, 6, 2+r.Int64N(9), 1)
		rule.Shared = &other
	case r.IntN(4) > 0:
	case rule.Kind == Funnel && r.IntN(2) == 0:
		o := Operation{Verb: Reserve, Funnel: rule.Funnel, Quantity: 1 + r.Int64N(3), ID: r.Uint64N(5), TTLNs: r.Int64N(2 * sec)}
		_, _ = o.Do(s, nowNs)
		return
	case n != nil && !n.Debits(), rule.Kind == SlidingWindow, rule.Kind == Bucket:
	default: // it may go beyond the limit
		rule.Flags, quantity = Debit, 1+r.Int64N(6)
	}
	_, _, _ = rule.Decide(s, nowNs, quantity)
}

// mostOf returns the most units, up to a number, that a request is given, and 1 if there are none.
func mostOf(rule *Rule, s *State, nowNs, most int64) int64 {
	for units := most; units > 1; units-- {
		as := Shifted(*s, 0)
		if got, _, err := rule.Decide(&as, nowNs, units); err == nil && !got.Limited && got.Marks&funnel.Shadowed == 0 {
			return units
		}
	}
	return 1
}

// TestTaken: a shadow gives all that is asked for, whatever is left, and a denial nothing.
func TestTaken(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]int64{
		"funnel": {5, 2, 0, 0}, "one rule": {5, 1, 0, 0}, "all kinds": {5, 1, 0, 0}, "a shadow": {5, 5, 5, 5}, "unlimited": {5, 5, 5, 5}, "denied": {0, 0, 0, 0},
		"denied by a shadow": {5, 5, 5, 5},
	} {
		rule := atMostRules(t)[name]
		rule.Flags = AtMost
		if rule.Kind == Named {
			rule.Packed[0] = 5
		}
		s := rule.Full(t0)
		for i, want := range want {
			units := rule.Units(&s, t0, 5)
			result, _, err := rule.Decide(&s, t0, units)
			if got := rule.Taken(units, &result); got != want || err != nil {
				t.Errorf("%s, call %d: %d taken, %v, want %d", name, i, got, err, want)
			}
		}
	}
}

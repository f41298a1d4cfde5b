package namedlimit

import (
	"slices"
	"testing"

	"cellserver/internal/limiter"
)

// TestDigests tells apart what decides otherwise, and nothing else.
func TestDigests(t *testing.T) {
	t.Parallel()
	rule := Rule{Capacity: 5, Count: 5, PeriodSec: 60}
	deny, open := Policy{Constant: limiter.Deny}, Policy{Constant: limiter.Unlimited}
	base := func() Definition {
		return Definition{
			Name: "api", Near: DefaultNear, Policy: Policy{Rules: []Rule{rule}},
			Overrides: []Override{{Keys: []string{"a", "b"}, Policy: deny}, {Pattern: "x*", Policy: open}, {Pattern: "*y", Policy: deny}},
		}
	}
	want := base()
	for what, change := range map[string]func(d *Definition){
		"the order of keys": func(d *Definition) { d.Overrides[0].Keys = []string{"b", "a"} },
		"keys apart": func(d *Definition) {
			d.Overrides = slices.Concat([]Override{{Keys: []string{"b"}, Policy: deny}, {Keys: []string{"a"}, Policy: deny}}, d.Overrides[1:])
		},
		"rules by a plan": func(d *Definition) { d.Plan = "free" },
	} {
		got := base()
		if change(&got); got.digest() != want.digest() {
			t.Errorf("%s: it is another one", what)
		}
	}
	for what, change := range map[string]func(d *Definition){
		"capacity":   func(d *Definition) { d.Rules[0].Capacity++ },
		"count":      func(d *Definition) { d.Rules[0].Count++ },
		"period":     func(d *Definition) { d.Rules[0].PeriodSec++ },
		"algorithm":  func(d *Definition) { d.Rules[0].Algorithm = TokenBucket },
		"rule name":  func(d *Definition) { d.Rules[0].Name = "n" },
		"more rules": func(d *Definition) { d.Rules = append(d.Rules, Rule{Capacity: 1, Count: 1, PeriodSec: 1}) },
		"constant":   func(d *Definition) { d.Policy = deny },
		"near":       func(d *Definition) { d.Near = 0.9 },
		"shadow":     func(d *Definition) { d.Shadow = true },
		"a key":      func(d *Definition) { d.Overrides[0].Keys[0] = "c" },
		"a key less": func(d *Definition) { d.Overrides[0].Keys = []string{"a"} },
		"a policy":   func(d *Definition) { d.Overrides[0].Policy = open },
		"a pattern":  func(d *Definition) { d.Overrides[1].Pattern = "x?" },
		"patterns":   func(d *Definition) { slices.Reverse(d.Overrides[1:]) },
	} {
		got := base()
		if change(&got); got.digest() == want.digest() {
			t.Errorf("%s: it is no other one", what)
		}
	}
}

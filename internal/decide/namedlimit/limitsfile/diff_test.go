package limitsfile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	const before = `limits:
  gone: {rules: [{algorithm: funnel, max_burst: 99, count: 100, period: 60, name: x}], shadow: true, overrides: [{keys: [a, b], deny: true}, {pattern: c*, deny: true}]}
  kept: {plan: gold, overrides: [{keys: [a], plan: gold}, {pattern: p*, plan: gold}]}
  api:
    rules:
      - {algorithm: funnel, max_burst: 99, count: 100, period: 1m}
      - {algorithm: quota, max_count: 5, every: day, time_zone: Europe/Berlin}
      - {algorithm: fixed_window, max_count: 5, period: 1h, name: hourly}
    overrides:
      - {keys: [same, other], plan: gold}
      - {keys: [less], deny: true}
      - {keys: [changed], rules: [{algorithm: fixed_window, max_count: 5, period: 1h, name: hourly}]}
      - {pattern: "a*", deny: true}
      - {pattern: "b*", deny: true}
      - {pattern: "c*", deny: true}
  closed: {deny: true}
  moved: {plan: gold}
plans:
  gold: {rules: [{algorithm: funnel, capacity: 1, count: 1, period: 1}]}
  tin: {rules: [{algorithm: fixed_window, max_count: 1, period: 1}]}
`
	const after = `limits:
  new: {unlimited: true, overrides: [{keys: [a], deny: true}]}
  kept: {plan: gold, overrides: [{keys: [a], plan: gold}, {pattern: p*, plan: gold}]}
  api:
    rules:
      - {algorithm: funnel, max_burst: 199, count: 200, period: 1m}
      - {algorithm: quota, max_count: 5, every: day}
      - {algorithm: sliding_window, max_count: 5, period: 1h, name: hourly}
    overrides:
      - {keys: [same], plan: gold}
      - {keys: [more, other], plan: silver}
      - {keys: [changed], rules: [{algorithm: fixed_window, max_count: 5, period: 1h}]}
      - {pattern: "c*", deny: true}
      - {pattern: "a*", unlimited: true}
      - {pattern: "d*", deny: true}
    shadow: true
    near: 0.9
  closed: {rules: [{algorithm: approximate_window, max_count: 1, period: 1}]}
  moved: {rules: [{algorithm: funnel, capacity: 1, count: 1, period: 1}]}
plans:
  gold: {rules: [{algorithm: funnel, capacity: 2, count: 1, period: 1}]}
  silver: {rules: [{algorithm: funnel, capacity: 2, count: 1, period: 1}]}
`
	from, err := parse(before)
	must(t, err)
	to, err := parse(after)
	must(t, err)
	want := []Change{
		{"", "", "plan gold: rule funnel 1: FUNNEL 0 1 1 -> FUNNEL 1 1 1"},
		{"", "", "plan silver added: FUNNEL 1 1 1"},
		{"", "", "plan tin removed: FIXEDWINDOW 1 1"},
		{"api", "", "near: 0.8 -> 0.9"},
		{"api", "", `pattern "a*": DENY -> UNLIMITED`},
		{"api", "", `pattern "b*" removed: DENY`},
		{"api", "", `pattern "c*" is now looked at before "a*"`},
		{"api", "", `pattern "d*" added: DENY`},
		{"api", "", "rule funnel 60: FUNNEL 99 100 60 -> FUNNEL 199 200 60"},
		{"api", "", "rule hourly: FIXEDWINDOW 5 3600 -> SLIDINGWINDOW 5 3600, its count begins empty"},
		{"api", "", "rule quota day Europe/Berlin removed: QUOTA 5 DAY TZ Europe/Berlin"},
		{"api", "", "rule quota day added: QUOTA 5 DAY, its count begins empty"},
		{"api", "", "shadow: false -> true"},
		{"api", "changed", "override: FIXEDWINDOW 5 3600 (hourly) -> FIXEDWINDOW 5 3600"},
		{"api", "less", "override removed: DENY"},
		{"api", "more", "override added: PLAN silver"},
		{"api", "other", "override: PLAN gold -> PLAN silver"},
		{"closed", "", "policy: DENY -> SLIDINGWINDOW 1 1 APPROX"},
		{"gone", "", "removed: FUNNEL 99 100 60 (x), shadow, 3 overrides"},
		{"kept", "", "rule funnel 1: FUNNEL 0 1 1 -> FUNNEL 1 1 1"},
		{"moved", "", "plan: gold -> none"},
		{"new", "", "added: UNLIMITED, 1 override"},
	}
	got := Diff(from, to, funnel.Burst)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing %+v", want[i])
		case i >= len(want) || got[i] != want[i]:
			t.Errorf("got %+v", got[i])
		}
	}
	if got := Diff(from, from, funnel.Burst); len(got) > 0 {
		t.Errorf("of equal ones: %+v", got)
	}
	none := Diff(namedlimit.Definitions{}, namedlimit.Definitions{}, funnel.Burst)
	if all := Diff(namedlimit.Definitions{}, from, funnel.Burst); len(all) != len(from.Limits)+len(from.Plans) || len(none) > 0 {
		t.Errorf("of none: %+v", all)
	}
}

// TestDiffOfAny: only equal definitions have no difference, and each is in one line.
func TestDiffOfAny(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := random{rand.New(rand.NewPCG(seed, 9))}
		a, b := r.definitions(), r.definitions()
		for _, d := range []namedlimit.Definitions{a, b} {
			if changes := Diff(d, d, funnel.Capacity); len(changes) > 0 {
				t.Fatalf("seed %d: %+v", seed, changes)
			}
		}
		changes := Diff(a, b, funnel.Burst)
		if len(changes) == 0 && len(a.Limits)+len(b.Limits) > 0 && string(Text(a, funnel.Burst)) != string(Text(b, funnel.Burst)) {
			t.Errorf("seed %d: no change from %s to %s", seed, Text(a, funnel.Burst), Text(b, funnel.Burst))
		}
		for _, c := range changes {
			if strings.Contains(c.Text, "\n") || c.Text == "" {
				t.Errorf("seed %d: %q", seed, c)
			}
		}
	}
}

// BenchmarkDiff compares the most overrides.
func BenchmarkDiff(b *testing.B) {
	texts := [2]string{}
	for i := range texts {
		texts[i] = fmt.Sprintf("limits:\n  a:\n    deny: true\n    overrides:\n%s", many(namedlimit.MaxOverrides,
			fmt.Sprintf("    - {keys: [k#], rules: [{algorithm: fixed_window, max_count: #%d, period: 1}]}\n", i+1)))
	}
	from, err := parse(texts[0])
	if err != nil {
		b.Fatal(err)
	}
	to, err := parse(texts[1])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got := Diff(from, to, funnel.Burst); len(got) != namedlimit.MaxOverrides {
			b.Fatal(len(got))
		}
	}
}

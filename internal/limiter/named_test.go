package limiter

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

// TestWindowsAreDecidedTogether: a request denied by one window charges none.
func TestWindowsAreDecidedTogether(t *testing.T) {
	perSec, perMin := PlainRule(mustFunnel(t, 3, 3, 1), sec), PlainRule(mustFunnel(t, 5, 5, 60), 60*sec)
	var s State
	for i, tt := range []struct {
		atMs, quantity int64
		rules          []NamedRule
		want           funnel.Result
		expiresMs      int64
	}{
		{0, 0, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 0},
		{0, 2, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 24_000},
		{0, 2, []NamedRule{perSec, perMin}, funnel.Result{Limited: true, Limit: 3, Remaining: 1, RetryAfter: 1, ResetAfter: 1}, 24_000},
		{0, 4, []NamedRule{perSec, perMin}, funnel.Result{Limited: true, Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 24_000},
		{1000, 3, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 0, RetryAfter: -1, ResetAfter: 1}, 60_000},
		{2000, 1, []NamedRule{perMin, perSec}, funnel.Result{Limited: true, Limit: 5, RetryAfter: 10, ResetAfter: 58}, 60_000}, // in another order
		{2000, -4, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 12_000},
		{2000, 1, []NamedRule{perSec}, funnel.Result{Limit: 3, Remaining: 2, RetryAfter: -1, ResetAfter: 1}, 12_000}, // keeps the other
		{2000, 1, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 24_000},
		{2000, math.MinInt64, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 2_000},
		{2000, 1, nil, funnel.Result{}, 2_000},
	} {
		for _, shadow := range []bool{true, false} {
			before := State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
			n := NewNamedLimit(tt.rules, 0)
			n.Shadow = shadow
			r := OfNamed(n)
			want := tt.want
			if shadow && want.Limited {
				want.Limited, want.Marks, want.RetryAfter = false, funnel.Shadowed, -1
			}
			nowNs := t0 + tt.atMs*ms
			got := mustDecide(t, &r, &s, nowNs, tt.quantity)
			if got.Marks &= funnel.Shadowed; got != want || s.ExpiresNs/ms != t0/ms+tt.expiresMs {
				t.Errorf("call %d, shadow %v: got %+v, expires at %d ms, want %+v, at %d", i, shadow, got, s.ExpiresNs/ms-t0/ms, want, tt.expiresMs)
			}
			if err := Valid(&s); s.ExpiresNs > nowNs && err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			if shadow {
				s = before
			}
		}
	}
}

// TestFullWindowsAreKept: the largest exact windows of a limit, beside other rules, are read again.
func TestFullWindowsAreKept(t *testing.T) {
	w, err := window.NewExactLimit(funnel.WholeSeconds, window.MaxExact, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	var rules []NamedRule
	for i := range 7 {
		rules = append(rules, OtherRule(Rule{Kind: SlidingWindow, Packed: w.Packed()}, string(rune('a'+i))))
	}
	r := OfNamed(NewNamedLimit(append(rules, OtherRule(ruleOf(t, Quota), "last")), 0))
	r.named().Rules[7].Rule.Packed[0] = 1 << 40
	var s State
	for i := range int64(window.MaxExact) {
		if mustDecide(t, &r, &s, t0+i*ms, 1).Limited {
			t.Fatalf("call %d is limited", i)
		}
	}
	if got := mustDecide(t, &r, &s, t0+window.MaxExact*ms, 1); !got.Limited || got.RetryAfter < 1 {
		t.Errorf("one too many: %+v", got)
	}
	again, rest, ok := ReadState(AppendState(nil, &s))
	if !ok || len(rest) > 0 || !bytes.Equal(again.Payload, s.Payload) {
		t.Errorf("%d bytes are not read again", len(s.Payload))
	}
}

// TestOverridesKeepTheLimitsCounts: they hold again when the override ends.
func TestOverridesKeepTheLimitsCounts(t *testing.T) {
	year, minute := OtherRule(ruleOf(t, Quota), "year"), PlainRule(mustFunnel(t, 3, 3, 60), 60*sec)
	w, _ := window.NewLimit(funnel.WholeSeconds, 5, 60)
	limit := OfNamed(NewNamedLimit([]NamedRule{minute, year}, 0))
	for name, rules := range map[string][]NamedRule{
		"plain":  {PlainRule(mustFunnel(t, 5, 5, 1), sec)},
		"window": {OtherRule(Rule{Kind: FixedWindow, Packed: w.Packed()}, "w")},
		"same":   {minute},
	} {
		n := NewNamedLimit(rules, 0)
		n.Overridden = true
		override := OfNamed(n)
		var s State
		mustDecide(t, &limit, &s, t0, 2)
		for i := range int64(4) {
			mustDecide(t, &override, &s, t0+i*sec, 1)
			if err := Valid(&s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := mustDecide(t, &limit, &s, t0+300*sec, 0); got.Remaining != 3 {
			t.Errorf("%s: the minute's: %+v", name, got)
		}
		if got := limit.named().Look(1, &s, t0+300*sec, 0); got.Remaining != 8 {
			t.Errorf("%s: the year's: %+v", name, got)
		}
	}
}

// TestShareIsNear: near the limit is a share of what a server allows by itself.
func TestShareIsNear(t *testing.T) {
	var r Rule
	s := Spec{Kind: FixedWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{100, 60}}
	if err := s.Build(&r); err != nil {
		t.Fatal(err)
	}
	half := OfNamed(NewNamedLimit([]NamedRule{OtherRule(r, "window")}, 0.8))
	half.Share(0.5)
	var state State
	for _, tt := range []struct{ quantity, near int64 }{{39, 0}, {1, 1}} {
		got := mustDecide(t, &half, &state, t0, tt.quantity)
		if got.Limit != 50 || int64(got.Marks.Near()) != tt.near {
			t.Errorf("%d more: got %+v, near %b, want %b", tt.quantity, got, got.Marks.Near(), tt.near)
		}
	}
}

// TestShadowChargesNone: where only a shadow allows a request, the results of rules that would allow it are
// those of a look.
func TestShadowChargesNone(t *testing.T) {
	var rules []NamedRule
	for name, units := range map[string]int64{"wide": 5, "tight": 1} {
		var r Rule
		s := Spec{Kind: FixedWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{units, 60}}
		if err := s.Build(&r); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, OtherRule(r, name))
	}
	n := NewNamedLimit(rules, 0)
	n.Shadow = true
	var state State
	for _, tight := range []bool{false, true} {
		precise := n.Precise(nil)
		r := OfNamed(precise)
		got := mustDecide(t, &r, &state, t0, 1)
		if shadowed := got.Marks&funnel.Shadowed != 0; shadowed != tight {
			t.Errorf("got %+v", got)
		}
		for _, of := range precise.Results() {
			if want := of.Limit - 1; of.Remaining != want {
				t.Errorf("%d of %d remain, want %d", of.Remaining, of.Limit, want)
			}
		}
	}
}

// TestPreciseAgain: a copy in the place of another has nothing of it.
func TestPreciseAgain(t *testing.T) {
	t.Parallel()
	var place Precise
	rule := PlainRule(mustFunnel(t, 3, 3, 1), sec)
	for _, n := range []int{1, 3, 0, 2, 1, 16} {
		rules := make([]NamedRule, n)
		for i := range rules {
			rules[i] = rule
			rules[i].ID += uint64(int64(i) * sec)
		}
		limit := NewNamedLimit(rules, 0.5)
		got, want := limit.Precise(&place), limit.Precise(nil)
		if !reflect.DeepEqual(got.Rules, want.Rules) || !slices.Equal(got.Results(), want.Results()) || got != &place.NamedLimit {
			t.Errorf("%d rules: got %+v, want %+v", n, got, want)
		}
		for i := range got.Results() {
			got.Results()[i].Limit = 7
		}
	}
}

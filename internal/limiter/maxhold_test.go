package limiter

import (
	"math"
	"testing"
	"time"

	"cellserver/internal/funnel"
)

func TestMaxHold(t *testing.T) {
	t.Parallel()
	window := func(capacity int64) NamedRule {
		spec := Spec{Kind: FixedWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{capacity, 60}}
		var r Rule
		if err := spec.Build(&r); err != nil {
			t.Fatal(err)
		}
		return OtherRule(r, "fixed_window")
	}
	l, err := funnel.NewLimit(funnel.Capacity, 10, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	aFunnel := PlainRule(l, int64(time.Second))
	for _, tt := range []struct {
		rules []NamedRule
		share float64
		want  int64
	}{
		{[]NamedRule{window(100)}, 0.5, 50},
		{[]NamedRule{window(100)}, 0.29, 29},
		{[]NamedRule{window(1000)}, 0.001, 1},
		{[]NamedRule{window(99)}, 0.5, 49},
		{[]NamedRule{window(100)}, 1, 100},
		{[]NamedRule{window(100)}, 0.001, 1},
		{[]NamedRule{window(100)}, math.SmallestNonzeroFloat64, 1},
		{[]NamedRule{window(50), window(20)}, 0.5, 10},
		{[]NamedRule{window(50), aFunnel}, 0.5, 5},
		{[]NamedRule{window(math.MaxInt64)}, 1, math.MaxInt64},
		{[]NamedRule{window(math.MaxInt64)}, 0.5, math.MaxInt64 / 2},
		{[]NamedRule{window(100)}, 0, 0},
		{nil, 0.5, 0},
	} {
		n := NewNamedLimit(tt.rules, 0)
		if n.BoundHolds(tt.share); n.MaxHold != tt.want {
			t.Errorf("%v of %d rules: at most %d, want %d", tt.share, len(tt.rules), n.MaxHold, tt.want)
		}
		want := int64(math.MaxInt64)
		if tt.want > 0 {
			want = tt.want
		}
		if got := n.Holding(&Hold{}).Holdable(math.MaxInt64); got != want {
			t.Errorf("%v of %d rules: %d can be held, want %d", tt.share, len(tt.rules), got, want)
		}
		if got := n.Holdable(1); got != 1 {
			t.Errorf("%v of %d rules: %d of 1", tt.share, len(tt.rules), got)
		}
	}
}

// TestMaxHoldOfAShare: where a server has a share of a limit's capacity, so has a hold.
func TestMaxHoldOfAShare(t *testing.T) {
	t.Parallel()
	l, err := funnel.NewLimit(funnel.Capacity, 100, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := NewNamedLimit([]NamedRule{PlainRule(l, int64(time.Second))}, 0)
	n.BoundHolds(0.5)
	rule := OfNamed(n)
	rule.Share(0.2)
	if got := rule.named(); got.MaxHold != 10 || n.MaxHold != 50 {
		t.Errorf("at most %d, and %d of the whole", got.MaxHold, n.MaxHold)
	}
}

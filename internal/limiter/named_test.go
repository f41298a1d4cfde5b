package limiter

import (
	"bytes"
	"math"
	"testing"

	"cellserver/internal/funnel"
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
		{2000, 1, []NamedRule{perSec}, funnel.Result{Limit: 3, Remaining: 2, RetryAfter: -1, ResetAfter: 1}, 2_333}, // drops the other
		{2000, 1, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 14_000},
		{2000, math.MinInt64, []NamedRule{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 2_000},
		{2000, 1, nil, funnel.Result{}, 2_000},
	} {
		for _, shadow := range []bool{true, false} {
			before := State{s.Kind, s.ExpiresNs, bytes.Clone(s.Payload)}
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

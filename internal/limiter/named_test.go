package limiter

import (
	"bytes"
	"math"
	"sync/atomic"
	"testing"

	"cellserver/internal/funnel"
)

// TestWindowsAreDecidedTogether: a request denied by one window charges none.
func TestWindowsAreDecidedTogether(t *testing.T) {
	perSec, perMin := Window{mustFunnel(t, 3, 3, 1), sec}, Window{mustFunnel(t, 5, 5, 60), 60 * sec}
	var s State
	for i, tt := range []struct {
		atMs, quantity int64
		windows        []Window
		want           funnel.Result
		expiresMs      int64
	}{
		{0, 0, []Window{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 0},
		{0, 2, []Window{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 24_000},
		{0, 2, []Window{perSec, perMin}, funnel.Result{Limited: true, Limit: 3, Remaining: 1, RetryAfter: 1, ResetAfter: 1}, 24_000},
		{0, 4, []Window{perSec, perMin}, funnel.Result{Limited: true, Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 24_000},
		{1000, 3, []Window{perSec, perMin}, funnel.Result{Limit: 5, Remaining: 0, RetryAfter: -1, ResetAfter: 59}, 60_000},
		{2000, 1, []Window{perMin, perSec}, funnel.Result{Limited: true, Limit: 5, RetryAfter: 10, ResetAfter: 58}, 60_000}, // in another order
		{2000, -4, []Window{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 12_000},
		{2000, 1, []Window{perSec}, funnel.Result{Limit: 3, Remaining: 2, RetryAfter: -1, ResetAfter: 1}, 2_333}, // drops the other
		{2000, 1, []Window{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 1, RetryAfter: -1, ResetAfter: 1}, 14_000},
		{2000, math.MinInt64, []Window{perSec, perMin}, funnel.Result{Limit: 3, Remaining: 3, RetryAfter: -1}, 2_000},
		{2000, 1, nil, funnel.Result{}, 2_000},
	} {
		for _, shadow := range []bool{true, false} {
			before := State{s.Kind, s.ExpiresNs, bytes.Clone(s.Payload)}
			r := Rule{Kind: Named, Unit: funnel.WholeSeconds, Shared: &NamedLimit{Windows: tt.windows, Shadow: shadow}}
			want := tt.want
			if shadow && want.Limited {
				want.Limited, want.Shadowed, want.RetryAfter = false, true, -1
			}
			nowNs := t0 + tt.atMs*ms
			if got := mustDecide(t, &r, &s, nowNs, tt.quantity); got != want || s.ExpiresNs/ms != t0/ms+tt.expiresMs {
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

// TestCounter: looks are not counted; requests that a shadow would limit have a counter of their own.
func TestCounter(t *testing.T) {
	t.Parallel()
	var n NamedLimit
	n.Counts = &Counts{}
	for _, tt := range []struct {
		quantity int64
		result   funnel.Result
		want     *atomic.Uint64
	}{
		{1, funnel.Result{}, &n.Counts.Allowed},
		{1, funnel.Result{Limited: true}, &n.Counts.Limited},
		{2, funnel.Result{Shadowed: true}, &n.Counts.ShadowLimited},
		{0, funnel.Result{}, nil},
		{-1, funnel.Result{}, nil},
	} {
		if n.Counter(tt.quantity, &tt.result) != tt.want {
			t.Errorf("%+v has another counter", tt)
		}
	}
}

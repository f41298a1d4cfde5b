package window

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"cellserver/internal/funnel"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
	ms  = int64(1_000_000)
)

func mustLimit(t testing.TB, maxCount, periodSec int64) Limit {
	t.Helper()
	l, err := NewLimit(funnel.WholeSeconds, maxCount, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// window is a key's window of any kind.
type window struct {
	request   func(l Limit, payload []byte, expiresNs, nowNs, quantity int64, o Options) ([]byte, int64, funnel.Result, bool)
	payload   []byte
	expiresNs int64
}

func (w *window) ask(l Limit, nowNs, quantity int64, o Options) (r funnel.Result, changed bool) {
	w.payload, w.expiresNs, r, changed = w.request(l, w.payload, w.expiresNs, nowNs, quantity, o)
	return r, changed
}

// step is a call and its answer.
type step struct {
	atMs             int64
	quantity         int64
	limited          bool
	remaining        int64
	retry, reset     int64
	maxCount, period int64 // 5 and 10 s if zero
}

var tables = []struct {
	name        string
	request     func(l Limit, payload []byte, expiresNs, nowNs, quantity int64, o Options) ([]byte, int64, funnel.Result, bool)
	countDenied bool
	steps       []step
}{
	{name: "fixed: begins with the first request", request: Limit.Fixed, steps: []step{
		{atMs: 0, quantity: 0, remaining: 5, retry: -1},
		{atMs: 0, quantity: 6, limited: true, remaining: 5, retry: -1},
		{atMs: 1_000, quantity: 3, remaining: 2, retry: -1, reset: 10},
		{atMs: 1_001, quantity: 3, limited: true, remaining: 2, retry: 10, reset: 10},
		{atMs: 2_000, quantity: 2, remaining: 0, retry: -1, reset: 9},
		{atMs: 2_000, quantity: 0, remaining: 0, retry: -1, reset: 9},
		{atMs: 10_999, quantity: 1, limited: true, retry: 1, reset: 1},
		{atMs: 11_000, quantity: 1, remaining: 4, retry: -1, reset: 10},
	}},
	{name: "fixed: a refund lowers the count and leaves the end", request: Limit.Fixed, steps: []step{
		{atMs: 0, quantity: -3, remaining: 5, retry: -1},
		{atMs: 0, quantity: 4, remaining: 1, retry: -1, reset: 10},
		{atMs: 1_000, quantity: -1, remaining: 2, retry: -1, reset: 9},
		{atMs: 1_000, quantity: math.MinInt64, remaining: 5, retry: -1, reset: 9},
		{atMs: 9_000, quantity: 5, remaining: 0, retry: -1, reset: 1},
	}},
	{name: "fixed: denied units count", request: Limit.Fixed, countDenied: true, steps: []step{
		{atMs: 0, quantity: 6, limited: true, retry: -1, reset: 10},
		{atMs: 1_000, quantity: 1, limited: true, retry: 9, reset: 9},
		{atMs: 1_000, quantity: -3, remaining: 1, retry: -1, reset: 9},
		{atMs: 10_000, quantity: 5, remaining: 0, retry: -1, reset: 10},
		{atMs: 10_000, quantity: math.MaxInt64, limited: true, retry: -1, reset: 10},
		{atMs: 10_000, quantity: 0, limited: true, retry: 10, reset: 10},
	}},
	{name: "fixed: a current window keeps its end", request: Limit.Fixed, steps: []step{
		{atMs: 0, quantity: 4, remaining: 1, retry: -1, reset: 10},
		{atMs: 1_000, quantity: 1, remaining: 0, retry: -1, reset: 9, period: 100},
		{atMs: 1_000, quantity: 1, remaining: 1, retry: -1, reset: 9, maxCount: 7, period: 1},
		{atMs: 1_000, quantity: 1, limited: true, retry: 9, reset: 9},
	}},
	{name: "sliding: each unit leaves a period after it came", request: Limit.Sliding, steps: []step{
		{atMs: 0, quantity: 0, remaining: 5, retry: -1},
		{atMs: 0, quantity: 6, limited: true, remaining: 5, retry: -1},
		{atMs: 0, quantity: 2, remaining: 3, retry: -1, reset: 10},
		{atMs: 4_000, quantity: 3, remaining: 0, retry: -1, reset: 10},
		{atMs: 4_000, quantity: 0, remaining: 0, retry: -1, reset: 10},
		{atMs: 5_000, quantity: 1, limited: true, retry: 5, reset: 9},
		{atMs: 5_000, quantity: 2, limited: true, retry: 5, reset: 9},
		{atMs: 5_000, quantity: 3, limited: true, retry: 9, reset: 9},
		{atMs: 5_000, quantity: 6, limited: true, retry: -1, reset: 9},
		{atMs: 9_999, quantity: 1, limited: true, retry: 1, reset: 5},
		{atMs: 10_000, quantity: 1, remaining: 1, retry: -1, reset: 10},
		{atMs: 14_000, quantity: 4, remaining: 0, retry: -1, reset: 10},
	}},
	{name: "sliding: a refund takes the newest units back", request: Limit.Sliding, steps: []step{
		{atMs: 0, quantity: -1, remaining: 5, retry: -1},
		{atMs: 0, quantity: 2, remaining: 3, retry: -1, reset: 10},
		{atMs: 4_000, quantity: 3, remaining: 0, retry: -1, reset: 10},
		{atMs: 5_000, quantity: -1, remaining: 1, retry: -1, reset: 9},
		{atMs: 5_000, quantity: -3, remaining: 4, retry: -1, reset: 5},
		{atMs: 5_000, quantity: math.MinInt64, remaining: 5, retry: -1},
	}},
	{name: "sliding: denied units count, and the newest are kept", request: Limit.Sliding, countDenied: true, steps: []step{
		{atMs: 0, quantity: 5, remaining: 0, retry: -1, reset: 10},
		{atMs: 6_000, quantity: 3, limited: true, remaining: 0, retry: 10, reset: 10},
		{atMs: 10_000, quantity: 2, remaining: 0, retry: -1, reset: 10},
		{atMs: 11_000, quantity: 100, limited: true, remaining: 0, retry: -1, reset: 10},
		{atMs: 20_999, quantity: 0, remaining: 0, retry: -1, reset: 1},
		{atMs: 21_000, quantity: 5, remaining: 0, retry: -1, reset: 10},
	}},
	{name: "sliding: another period sees its part of the records", request: Limit.Sliding, steps: []step{
		{atMs: 0, quantity: 2, remaining: 3, retry: -1, reset: 10},
		{atMs: 3_000, quantity: 2, remaining: 1, retry: -1, reset: 10},
		{atMs: 4_000, quantity: 0, remaining: 3, retry: -1, reset: 1, period: 2},
		{atMs: 4_000, quantity: 0, remaining: 1, retry: -1, reset: 9},
		{atMs: 4_000, quantity: 0, remaining: 1, retry: -1, reset: 99, period: 100},
		{atMs: 4_000, quantity: 1, limited: true, retry: 6, reset: 9, maxCount: 3},
		{atMs: 4_000, quantity: 1, remaining: 2, retry: -1, reset: 2, period: 2},
		{atMs: 4_000, quantity: 0, remaining: 0, retry: -1, reset: 10},
	}},
	{name: "approximate: the previous period counts by its share", request: Limit.Approx, steps: []step{
		{atMs: 0, quantity: 0, remaining: 5, retry: -1},
		{atMs: 0, quantity: 4, remaining: 1, retry: -1, reset: 20},
		{atMs: 5_000, quantity: 2, limited: true, remaining: 1, retry: 8, reset: 15}, // 4 * 75 % + 2 at 12.5 s
		{atMs: 12_499, quantity: 2, limited: true, remaining: 1, retry: 1, reset: 8},
		{atMs: 12_500, quantity: 2, remaining: 0, retry: -1, reset: 18},
		{atMs: 13_000, quantity: 1, limited: true, remaining: 0, retry: 2, reset: 17},
		{atMs: 15_000, quantity: 1, remaining: 0, retry: -1, reset: 15},
		{atMs: 15_000, quantity: -2, remaining: 2, retry: -1, reset: 15},
		{atMs: 15_000, quantity: -2, remaining: 3, retry: -1, reset: 5},
		{atMs: 20_000, quantity: 0, remaining: 5, retry: -1},
	}},
	{name: "approximate: denied units count", request: Limit.Approx, countDenied: true, steps: []step{
		{atMs: 0, quantity: 5, remaining: 0, retry: -1, reset: 20},
		{atMs: 0, quantity: 5, limited: true, retry: 20, reset: 20}, // 10 * 0 % + 5, at the end of the next period
		{atMs: 0, quantity: 6, limited: true, retry: -1, reset: 20},
	}},
}

func TestWindowsOverTime(t *testing.T) {
	for _, tt := range tables {
		w := window{request: tt.request}
		for i, s := range tt.steps {
			if s.maxCount == 0 {
				s.maxCount = 5
			}
			if s.period == 0 {
				s.period = 10
			}
			got, _ := w.ask(mustLimit(t, s.maxCount, s.period), t0+s.atMs*ms, s.quantity, Options{Unit: funnel.WholeSeconds, CountDenied: tt.countDenied})
			if want := (funnel.Result{Limited: s.limited, Limit: s.maxCount, Remaining: s.remaining, RetryAfter: s.retry, ResetAfter: s.reset}); got != want {
				t.Errorf("%s: call %d at %d ms: got %+v, want %+v", tt.name, i, s.atMs, got, want)
			}
		}
	}
}

func TestLimitErrors(t *testing.T) {
	for _, tt := range []struct {
		unit             funnel.Unit
		maxCount, period int64
		exact            bool
		want             string // "" for none
	}{
		{funnel.Seconds, 1, 1, true, ""},
		{funnel.Seconds, 0, 1, false, "max_count must be at least 1, got 0"},
		{funnel.Seconds, -1, 0, true, "max_count must be at least 1, got -1"},
		{funnel.Seconds, 1, 0, false, "period must be at least 1, got 0"},
		{funnel.Seconds, 4096, 1, true, ""},
		{funnel.Seconds, 4097, 1, true, "max_count must be at most 4096 for an exact window, got 4097; add APPROX for a larger one"},
		{funnel.Seconds, math.MaxInt64, 1, false, ""},
		{funnel.Seconds, 1, 4611686018, false, ""},
		{funnel.Seconds, 1, 4611686019, false, ErrTooLong.Error()},
		{funnel.Milliseconds, 1, 4611686018427, false, ""},
		{funnel.Milliseconds, 1, 4611686018428, false, ErrTooLong.Error()},
		{funnel.Milliseconds, 1, math.MaxInt64, true, ErrTooLong.Error()},
	} {
		newLimit := NewLimit
		if tt.exact {
			newLimit = NewExactLimit
		}
		_, err := newLimit(tt.unit, tt.maxCount, tt.period)
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("max_count %d, period %d: got %q, want %q", tt.maxCount, tt.period, got, tt.want)
		}
	}
	var argument *funnel.ArgumentError
	if _, err := NewLimit(funnel.Seconds, 0, 1); !errors.As(err, &argument) || argument.Name != "max_count" {
		t.Errorf("max_count 0: got %v, want an ArgumentError that names it", err)
	}
}

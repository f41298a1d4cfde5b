package cellserver

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestLocal(t *testing.T) {
	const sec = time.Second
	f := Funnel{MaxBurst: 2, Count: 1, Period: sec}
	start := time.Unix(1_700_000_000, 0)
	l := new(local)
	for i, tt := range []struct {
		at   time.Duration
		n    int64
		want Result
	}{
		{0, 0, Result{Allowed: true, Remaining: 3, RetryAfter: -1}},
		{0, 1, Result{Allowed: true, Remaining: 2, RetryAfter: -1, ResetAfter: sec}},
		{0, 4, Result{Remaining: 2, RetryAfter: -1, ResetAfter: sec}},
		{0, 2, Result{Allowed: true, RetryAfter: -1, ResetAfter: 3 * sec}},
		{sec / 2, 1, Result{RetryAfter: sec / 2, ResetAfter: 5 * sec / 2}},
		{sec, 2, Result{Remaining: 1, RetryAfter: sec, ResetAfter: 2 * sec}},
		{sec, 1, Result{Allowed: true, RetryAfter: -1, ResetAfter: 3 * sec}},
		{9 * sec, 1, Result{Allowed: true, Remaining: 2, RetryAfter: -1, ResetAfter: sec}},
	} {
		tt.want.Limit = 3
		if got := l.take(start.Add(tt.at), "k", f, tt.n); got != tt.want {
			t.Errorf("%d: %+v, want %+v", i, got, tt.want)
		}
	}
}

func TestLocalAtMost(t *testing.T) {
	const sec = time.Second
	f := Funnel{MaxBurst: 4, Count: 1, Period: sec}
	start := time.Unix(1_700_000_000, 0)
	l := new(local)
	for i, tt := range []struct {
		at       time.Duration
		n, taken int64
	}{{0, 3, 3}, {0, 3, 2}, {0, 3, 0}, {sec - 1, 3, 0}, {sec, 3, 1}, {3*sec - 1, 9, 1}, {3 * sec, 9, 1}, {99 * sec, 1 << 60, 5}} {
		r := l.takeAtMost(start.Add(tt.at), "k", f, tt.n)
		if r.Taken != tt.taken || r.Allowed != (tt.taken > 0) || r.Allowed == (r.RetryAfter > 0) {
			t.Errorf("%d: %+v, want %d taken", i, r, tt.taken)
		}
	}
}

func TestLocalIsBounded(t *testing.T) {
	l, now := new(local), time.Unix(0, 0)
	f := Funnel{MaxBurst: 9, Count: 1, Period: time.Hour}
	l.take(now, "debtor", f, 10)
	for i := range 3 * maxLocalKeys {
		l.take(now, fmt.Sprint(i), f, 1)
	}
	if len(l.tat) != maxLocalKeys {
		t.Errorf("it has %d keys", len(l.tat))
	}
	if l.take(now, "debtor", f, 1).Allowed {
		t.Error("the largest debt of all was forgiven")
	}
}

func TestFunnelCheck(t *testing.T) {
	for _, tt := range []struct {
		f  Funnel
		ok bool
	}{
		{Funnel{0, 1, time.Second}, true},
		{Funnel{1 << 40, 1 << 62, time.Second}, true},
		{Funnel{}, false},
		{Funnel{-1, 1, time.Second}, false},
		{Funnel{0, 1, -time.Second}, false},
		{Funnel{math.MaxInt64, 1, 1}, false},
		{Funnel{math.MaxInt64 - 1, 1, time.Hour}, false},
	} {
		if err := tt.f.check(); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.f, err)
		}
	}
}

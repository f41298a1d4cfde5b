package cellserver_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

// left returns what a look finds of a limit and a key.
func left(t *testing.T, s *servertest.Server, limit, key string) int64 {
	t.Helper()
	return s.Do(t, "cl.check "+limit+" "+key+" 0").([]any)[2].(int64)
}

func use(limit, key string, units int64) cellserver.Use {
	return cellserver.Use{Limit: limit, Key: key, Units: units}
}

func holdFor(t *testing.T, l *cellserver.Limiter, ttl time.Duration, uses ...cellserver.Use) *cellserver.Hold {
	t.Helper()
	h, err := l.Hold(t.Context(), ttl, uses...)
	if err != nil || !h.Allowed {
		t.Fatalf("%+v, %v", h, err)
	}
	return h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func budgets(t *testing.T, args ...string) *servertest.Server {
	t.Helper()
	s := servertest.Start(t, binary, args...)
	s.Do(t, "cl.limit set org quota 1000 month")
	s.Do(t, "cl.limit set user quota 100 day")
	return s
}

func TestHold(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	for i, tt := range []struct {
		settle    []int64
		org, user int64
	}{
		{[]int64{10}, 990, 90},
		{[]int64{20, 10}, 970, 80},
		{[]int64{0}, 970, 80},
		{[]int64{60}, 910, 20}, // more than was held
	} {
		h := holdFor(t, l, long/2, use("org", "acme", 40), use("user", "ann", 20))
		if got := h.Results[1]; got.Name != "user" || got.Limit != 100 || h.Err != nil {
			t.Errorf("%d: %+v", i, got)
		}
		check(t, h.Settle(t.Context(), tt.settle...))
		check(t, h.Settle(t.Context(), 1)) // only the first counts
		if org, user := left(t, s, "org", "acme"), left(t, s, "user", "ann"); org != tt.org || user != tt.user {
			t.Errorf("%d: %d and %d are left, want %d and %d", i, org, user, tt.org, tt.user)
		}
	}
	h, err := l.Hold(t.Context(), long/2, use("org", "acme", 40), use("user", "ann", 21))
	if err != nil || h.Allowed || !h.Results[0].Allowed || h.Results[1].Allowed || h.Results[1].RetryAfter <= 0 {
		t.Errorf("%+v, %v", h, err)
	}
	check(t, h.Settle(t.Context(), 5))
	if left(t, s, "org", "acme") != 910 {
		t.Error("a denied hold was charged")
	}
}

func TestHoldUnlimited(t *testing.T) {
	s := budgets(t)
	s.Do(t, "cl.limit override org free unlimited")
	l := patient(t, s.Addr, cellserver.Closed)
	check(t, holdFor(t, l, time.Minute, use("org", "free", 40)).Settle(t.Context(), 5))
	check(t, holdFor(t, l, time.Minute, use("org", "free", 40), use("user", "ann", 9)).Settle(t.Context(), 5))
	if left(t, s, "user", "ann") != 95 {
		t.Error("not settled")
	}
}

func TestHoldTime(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	waitFor := func(user int64) {
		t.Helper()
		for left(t, s, "user", "ann") != user {
			time.Sleep(time.Millisecond)
		}
	}
	h := holdFor(t, l, time.Millisecond, use("user", "ann", 40))
	waitFor(100)
	if open, err := h.Extend(t.Context(), time.Minute); open || err != nil {
		t.Errorf("extended: %t, %v", open, err)
	}
	check(t, h.Settle(t.Context(), 10)) // late
	waitFor(90)
	h, err := l.HoldBy(t.Context(), cellserver.HoldOptions{TTL: time.Millisecond, Charge: true}, use("user", "ann", 40))
	check(t, err)
	time.Sleep(5 * time.Millisecond)
	waitFor(50)
	check(t, h.Settle(t.Context(), 5))
	waitFor(85)
	h = holdFor(t, l, time.Minute, use("user", "ann", 40))
	if open, err := h.Extend(t.Context(), long/2); !open || err != nil {
		t.Errorf("extended: %t, %v", open, err)
	}
	check(t, h.Cancel(t.Context()))
	waitFor(85)
}

func TestHoldID(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	opt := cellserver.HoldOptions{TTL: time.Minute, ID: "answer-1"}
	var h *cellserver.Hold
	for range 2 {
		var err error
		if h, err = l.HoldBy(t.Context(), opt, use("user", "ann", 40)); err != nil || h.ID() != opt.ID {
			t.Fatalf("%+v, %v", h, err)
		}
	}
	if left(t, s, "user", "ann") != 60 {
		t.Error("the same id was held twice")
	}
	// A later process has only what the first has written down.
	check(t, l.Resume("answer-1", false, use("user", "ann", 40)).Settle(t.Context(), 30))
	if left(t, s, "user", "ann") != 70 {
		t.Error("not settled")
	}
	for _, of := range []*cellserver.Hold{h, l.Resume("answer-1", false, use("user", "ann", 40))} {
		if err := of.Settle(t.Context(), 30); !errors.Is(err, cellserver.ErrNoHold) {
			t.Error(err)
		}
	}
	if left(t, s, "user", "ann") != 70 {
		t.Error("settled twice")
	}
}

// TestHoldLost has a hold that the server does not have any more, as after a failure.
func TestHoldLost(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	h := holdFor(t, l, time.Minute, use("org", "acme", 40), use("user", "ann", 20))
	cancelled := holdFor(t, l, time.Minute, use("org", "acme", 40))
	s.Do(t, "flushall")
	check(t, h.Settle(t.Context(), 30, 10))
	check(t, cancelled.Cancel(t.Context()))
	if org, user := left(t, s, "org", "acme"), left(t, s, "user", "ann"); org != 970 || user != 90 {
		t.Errorf("%d and %d are left", org, user)
	}
}

func TestHoldMistakes(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	for _, tt := range []struct {
		ttl  time.Duration
		uses []cellserver.Use
	}{
		{0, []cellserver.Use{use("org", "a", 1)}},
		{25 * time.Hour, []cellserver.Use{use("org", "a", 1)}},
		{time.Minute, nil},
		{time.Minute, []cellserver.Use{use("org", "a", 0)}},
		{time.Minute, []cellserver.Use{use("unknown", "a", 1)}},
	} {
		if _, err := l.Hold(t.Context(), tt.ttl, tt.uses...); err == nil {
			t.Errorf("%+v is no mistake", tt)
		}
	}
	h := holdFor(t, l, time.Minute, use("org", strings.Repeat("k", 5000), 1))
	for _, units := range [][]int64{nil, {-1}, {1, 2}} {
		if err := h.Settle(t.Context(), units...); err == nil {
			t.Errorf("%v is no mistake", units)
		}
	}
	check(t, h.Cancel(t.Context()))
	if got := l.Settlements(); got != (cellserver.Settlements{}) {
		t.Errorf("%+v", got)
	}
}

func TestHoldClose(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	reported := 0
	l.Report = func(err error) {
		if errors.Is(err, cellserver.ErrUnsettled) {
			reported++
		}
	}
	h := holdFor(t, l, time.Minute, use("org", "a", 1))
	h.Close()
	h.Close()
	h = holdFor(t, l, time.Minute, use("org", "a", 1))
	check(t, h.Cancel(t.Context()))
	h.Close()
	if reported != 1 || left(t, s, "org", "a") != 999 {
		t.Errorf("%d reported, %d left", reported, left(t, s, "org", "a"))
	}
}

func TestUSD(t *testing.T) {
	for _, tt := range []struct {
		dollars float64
		want    int64
	}{
		{0.0123, 12_300}, {0.1 + 0.2, 300_000}, {1, 1_000_000}, {0.000_000_1, 1}, {1e-12, 1}, {0.000_001_01, 2},
		{4.35, 4_350_000}, {0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(1), math.MaxInt64},
	} {
		if got := cellserver.USD(tt.dollars); got != tt.want {
			t.Errorf("USD(%v) = %d, want %d", tt.dollars, got, tt.want)
		}
	}
}

func TestNear(t *testing.T) {
	for _, tt := range []struct {
		limit, remaining int64
		want             bool
	}{
		{100, 21, false}, {100, 20, true}, {100, 0, true}, {3, 1, false}, {3, 0, true},
		{0, 0, false}, {math.MaxInt64, math.MaxInt64, false},
	} {
		if got := (cellserver.Result{Limit: tt.limit, Remaining: tt.remaining}).Near(0.8); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

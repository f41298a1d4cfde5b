package observe

import (
	"fmt"
	"math"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// TestSlowness: the lower threshold decides.
func TestSlowness(t *testing.T) {
	const never = math.MaxInt64
	for _, tt := range []struct{ slowlogUs, latencyMs, minNs int64 }{
		{-1, 0, never},
		{0, 0, 0},
		{1, 0, 1000},
		{-1, 1, 1_000_000},
		{5000, 2, 2_000_000},
		{1000, 2, 1_000_000},
		{-2, -2, never},
		{never / 1000, 0, never / 1000 * 1000},
		{never/1000 + 1, 0, never},
		{-1, never / 1_000_000, never / 1_000_000 * 1_000_000},
		{-1, never/1_000_000 + 1, never},
		{never, never, never},
	} {
		var s Slowness
		s.SetSlowlog(tt.slowlogUs)
		s.SetLatency(tt.latencyMs)
		if s.Slowlog() != tt.slowlogUs || s.Latency() != tt.latencyMs || s.Any() != (tt.minNs < never) {
			t.Errorf("%+v: %d us, %d ms, any %t", tt, s.Slowlog(), s.Latency(), s.Any())
		}
		if !s.IsSlow(tt.minNs) || s.IsSlow(tt.minNs-1) {
			t.Errorf("%+v: slow at the threshold %t, below %t", tt, s.IsSlow(tt.minNs), s.IsSlow(tt.minNs-1))
		}
	}
}

type caller struct{}

func (caller) Addr() string { return "addr" }
func (caller) Name() string { return "name" }

// TestSlowCall: a call is recorded where it reaches the threshold.
func TestSlowCall(t *testing.T) {
	table := catalog.New()
	fast, slow := table.Lookup([]byte("ping")), table.Lookup([]byte("keys"))
	for _, tt := range []struct {
		fromUs, fromMs int64
		command        *catalog.Command
		ns             int64
		slowlog        string
		latencies      string
	}{
		{-1, 0, slow, sec, "[]", "map[]"},
		{2000, 0, slow, 2*ms - 1, "[]", "map[]"},
		{2000, 0, slow, 2*ms + 999, "[{0 1700000000 2000 [a] addr name}]", "map[]"},
		{0, 0, slow, 0, "[{0 1700000000 0 [a] addr name}]", "map[]"},
		{-1, 2, slow, 2 * ms, "[]", "map[command:{[{1700000000 2}] 2}]"},
		{1, 2, fast, 2 * ms, "[{0 1700000000 2000 [a] addr name}]", "map[fast-command:{[{1700000000 2}] 2}]"},
	} {
		r := New(table, t0)
		r.Slowlog.SetMaxLen(10)
		r.Slowness.SetSlowlog(tt.fromUs)
		r.Slowness.SetLatency(tt.fromMs)
		r.SlowCall(tt.command, []string{"a"}, caller{}, t0+sec-1, tt.ns)
		if got := fmt.Sprint(r.Slowlog.Latest(-1)); got != tt.slowlog {
			t.Errorf("%+v: slow log %s", tt, got)
		}
		if got := fmt.Sprint(r.Latencies.All()); got != tt.latencies {
			t.Errorf("%+v: latencies %s", tt, got)
		}
	}
	r := New(table, t0)
	r.Slowlog.SetMaxLen(10)
	r.Slowness.SetSlowlog(0)
	throttle := table.Lookup([]byte("cl.throttle"))
	r.SlowCall(throttle, BatchArgs(throttle, []store.Request{{Key: store.Key{Name: []byte("k")}}}), caller{}, t0, 5000)
	if got, want := fmt.Sprint(r.Slowlog.Latest(-1)), "[{0 1700000000 5 [CL.THROTTLE k] addr name}]"; got != want {
		t.Errorf("a batch: got %s, want %s", got, want)
	}
}

// TestSlowlog keeps the newest; the next entry removes the excess.
func TestSlowlog(t *testing.T) {
	var l Slowlog
	add := func(n int64) {
		for range n {
			l.add(SlowEntry{})
		}
	}
	latest := func(n int64) string {
		text := ""
		for _, e := range l.Latest(n) {
			text += fmt.Sprint(e.ID, " ")
		}
		return text
	}
	if add(1); l.Len() != 0 {
		t.Errorf("%d entries, want none", l.Len())
	}
	l.SetMaxLen(3)
	add(5)
	for n, want := range map[int64]string{-1: "5 4 3 ", 0: "", 1: "5 ", 3: "5 4 3 ", 9: "5 4 3 "} {
		if got := latest(n); got != want {
			t.Errorf("the latest %d are %s, want %s", n, got, want)
		}
	}
	if l.SetMaxLen(1); l.Len() != 3 || l.MaxLen() != 1 {
		t.Errorf("%d entries, at most %d", l.Len(), l.MaxLen())
	}
	if add(1); latest(-1) != "6 " {
		t.Errorf("left %s", latest(-1))
	}
	l.Reset()
	if add(1); latest(-1) != "7 " {
		t.Errorf("after Reset: %s", latest(-1))
	}
}

func TestCallsByTime(t *testing.T) {
	var h CallsByTime
	for _, ns := range []int64{-5, 0, 1, 999, 1000, 1001, 2000, 2001, 4000, 1e15} {
		h.add(ns, 1)
	}
	calls, buckets := h.Cumulative()
	if got, want := fmt.Sprint(calls, buckets), "10 [{1 5} {2 7} {4 9} {8388608 10}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

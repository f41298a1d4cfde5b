package window

import (
	"math"
	"testing"

	"cellserver/internal/test/racetest"
)

// TestSlidingForgetsNothingEarly: calls with a shorter period or smaller max_count, which need no right to
// refund, keep others limited as long as before.
func TestSlidingForgetsNothingEarly(t *testing.T) {
	t.Parallel()
	l := mustLimit(t, 5, 60)
	for _, other := range []struct {
		maxCount, periodSec, quantity int64
		countDenied                   bool
	}{
		{5, 1, 1, false}, {5, 30, 1, false}, {1, 60, 1, true}, {1, 1, 1, true}, {3, 1, 7, true}, {MaxExact, 1, 1, false},
	} {
		w := window{request: Limit.Sliding}
		for range 5 {
			w.ask(l, t0, 1, Options{})
		}
		for nowNs := t0 + 2*sec; nowNs < t0+60*sec; nowNs += sec {
			w.ask(mustLimit(t, other.maxCount, other.periodSec), nowNs, other.quantity, Options{CountDenied: other.countDenied})
			if r, _ := w.ask(l, nowNs, 1, Options{}); !r.Limited {
				t.Fatalf("%+v: allowed again after %d s", other, (nowNs-t0)/sec)
			}
			if !ValidSliding(w.payload, w.expiresNs) {
				t.Fatalf("%+v: invalid payload", other)
			}
		}
	}
}

// TestSlidingShorterPeriod: older units do not count in a shorter period, and no more records are kept than
// fit.
func TestSlidingShorterPeriod(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	w := window{request: Limit.Sliding}
	w.ask(mustLimit(t, 5, 3600), t0, 5, Options{})
	short, nowNs := mustLimit(t, 2, 1), t0
	for i := range MaxExact * 2 {
		nowNs += sec / 2
		if i == 1 {
			nowNs += sec // the first five count until then
		}
		r, changed := w.ask(short, nowNs, 1, Options{})
		if i > 0 && (r.Limited || !changed || r.ResetAfter != 1) {
			t.Fatalf("call %d: %+v", i, r)
		}
		if i%validEach == 0 && !ValidSliding(w.payload, w.expiresNs) {
			t.Fatal("invalid payload")
		}
	}
	if g := openRing(w.payload); g.length != MaxExact {
		t.Errorf("%d records are kept, want %d", g.length, MaxExact)
	}
	if r, _ := w.ask(short, nowNs+3*sec, 0, Options{}); r.Remaining != 2 || r.ResetAfter != 0 {
		t.Errorf("later: %+v", r)
	}
	if w.ask(short, w.expiresNs, 1, Options{}); openRing(w.payload).length != 1 || w.expiresNs-nowNs > 3602*sec {
		t.Errorf("after an empty window: %d records, want 1", openRing(w.payload).length)
	}
}

// TestApproxShorterPeriod: a shorter period drops units older than two of it, only when it counts a request,
// and nothing more recent.
func TestApproxShorterPeriod(t *testing.T) {
	t.Parallel()
	long, short := mustLimit(t, 5, 60), mustLimit(t, 5, 1)
	for _, tt := range []struct {
		name            string
		atNs, quantity  int64
		remains, counts int64 // units that a call with the longer period has left then, and those that the shorter one has
	}{
		{"at once", 0, 1, 0, 0}, {"a look", 30 * sec, 0, 0, 5}, {"more than fits", 30 * sec, 6, 0, 5},
		{"after a period", sec, 1, 0, 0}, {"in the second period", 3 * sec / 2, 1, 0, 1}, {"after two", 2 * sec, 1, 4, 4},
	} {
		w := window{request: Limit.Approx}
		w.ask(long, t0, 5, Options{})
		got, _ := w.ask(short, t0+tt.atNs, tt.quantity, Options{})
		if r, _ := w.ask(long, t0+tt.atNs, 0, Options{}); r.Remaining != tt.remains || got.Remaining != tt.counts {
			t.Errorf("%s: %d remain, %d in the shorter period, want %d and %d", tt.name, r.Remaining, got.Remaining, tt.remains, tt.counts)
		}
	}
}

// TestSlidingLongerPeriod: a new longest period finds what others have kept and extends it; a look does not.
func TestSlidingLongerPeriod(t *testing.T) {
	t.Parallel()
	long, short := mustLimit(t, 5, 60), mustLimit(t, 5, 1)
	for _, tt := range []struct {
		first      Limit
		lookFirst  bool
		remains    int64
		whileLater int64
	}{{short, false, 3, 2}, {short, true, 3, 2}, {long, false, 1, 0}} {
		w := window{request: Limit.Sliding}
		w.ask(tt.first, t0, 2, Options{})
		if tt.lookFirst {
			w.ask(long, t0, 0, Options{})
		}
		w.ask(short, t0+2*sec, 1, Options{}) // drops records that left
		if r, _ := w.ask(long, t0+2*sec, 1, Options{}); r.Limited || r.Remaining != tt.remains {
			t.Errorf("%+v: got %+v", tt, r)
		}
		w.ask(short, t0+5*sec, 1, Options{})
		if r, _ := w.ask(long, t0+5*sec, 0, Options{}); r.Remaining != tt.whileLater {
			t.Errorf("%+v: later got %+v", tt, r)
		}
	}
}

// TestApproxRefundsThePeriodBefore: refunds reach the previous period's units by their weight.
func TestApproxRefundsThePeriodBefore(t *testing.T) {
	t.Parallel()
	l := mustLimit(t, 10, 10)
	for _, tt := range []struct {
		current, refund int64
		remains         int64 // 5 s into the second period, where a unit of the first counts half
		changed         bool
	}{
		{0, -4, 7, true}, {0, -10, 10, true}, {0, -100, 10, true}, {3, -2, 4, true}, {3, -3, 5, true}, {3, -4, 5, true}, {3, -5, 6, true},
		{5, -1, 1, true}, {0, math.MinInt64, 10, true}, {5, math.MinInt64, 10, true},
	} {
		w := window{request: Limit.Approx}
		w.ask(l, t0, 10, Options{})
		if tt.current > 0 {
			w.ask(l, t0+15*sec, tt.current, Options{})
		}
		r, changed := w.ask(l, t0+15*sec, tt.refund, Options{})
		if r.Limited || r.Remaining != tt.remains || changed != tt.changed || !ValidApprox(w.payload, w.expiresNs) && tt.remains < 10 {
			t.Errorf("%+v: got %+v, changed %v", tt, r, changed)
		}
		if tt.remains == 10 && w.expiresNs > t0+15*sec {
			t.Errorf("%+v: the empty key expires at %d", tt, w.expiresNs)
		}
	}
	w := window{request: Limit.Approx}
	if _, changed := w.ask(l, t0, -1, Options{}); changed {
		t.Error("a refund to an empty window changed it")
	}
}

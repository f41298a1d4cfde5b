package calendar

import (
	"math"
	"sync"
	"testing"
)

const (
	minuteNs = secPerMin * nsPerSec
	hourNs   = secPerHour * nsPerSec
	dayNs    = secPerDay * nsPerSec
)

func TestSync(t *testing.T) {
	for _, tt := range []struct {
		name                                         string
		presentNs, beforeNs, wallNs, afterNs, wantNs int64
	}{
		{"equal clocks", 0, 100, 100, 100, 0},
		{"within a millisecond", 0, 0, slackNs, 0, 0},
		{"more than a millisecond later", 0, 0, slackNs + 1, 0, slackNs + 1},
		{"more than a millisecond earlier", 0, slackNs + 1, 0, slackNs + 1, -slackNs - 1},
		{"within a long reading", 5 * slackNs, 0, 10 * slackNs, 10 * slackNs, 5 * slackNs},
		{"to the middle", 0, 0, 20 * slackNs, 10 * slackNs, 15 * slackNs},
		{"far apart", 0, math.MinInt64, math.MaxInt64, math.MinInt64, math.MaxInt64},
		{"far apart, back", 0, math.MaxInt64, math.MinInt64, math.MaxInt64, math.MinInt64},
		{"no information", 7, math.MinInt64, 0, math.MaxInt64, 7},
	} {
		w := new(Wall)
		w.offsetNs.Store(tt.presentNs)
		w.Sync(tt.beforeNs, tt.wallNs, tt.afterNs)
		if got := w.OffsetNs(); got != tt.wantNs {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.wantNs)
		}
	}
}

// TestEnds: a step is a reading of the server's clock after the wall clock was set.
func TestEnds(t *testing.T) {
	noon := at(t, "2024-02-28T12:00:00Z")
	midnight := noon + 12*hourNs
	type step struct {
		name                    string
		wallNs, serverNs, endNs int64
	}
	for _, steps := range [][]step{{
		{"a day", noon, noon, midnight},
		{"its last instant", midnight - 1, midnight - 1, midnight},
		{"the next", midnight, midnight, midnight + dayNs},
		{"an older time", midnight - 1, midnight - 1, midnight},
		{"the present", midnight + 1, midnight + 1, midnight + dayNs},
		{"set back", midnight - 1000, midnight + 1 + 1e9, midnight + dayNs + 1001 + 1e9},
		{"set back by an hour", midnight - hourNs, midnight + 2e9, midnight + dayNs + hourNs + 2e9},
		{"set back by more than an hour", midnight - hourNs - 1e9, midnight + 2e9, midnight + hourNs + 3e9},
	}, {
		{"a clock ahead by two hours", midnight + hourNs, midnight - hourNs, midnight + dayNs - 2*hourNs},
		{"set back by an hour and a half", midnight - hourNs/2, midnight - hourNs, midnight + dayNs - hourNs/2},
		{"set back by another", midnight - 2*hourNs, midnight - hourNs, midnight + hourNs},
	}, {
		{"a far year", noon + 9999*dayNs, noon + 9999*dayNs, midnight + 9999*dayNs},
		{"and back", noon, noon, midnight},
		{"and 1970", 1, 1, dayNs},
		{"and a day before", -dayNs, -dayNs, 0},
		{"the last time", math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{"the first time", math.MinInt64, math.MinInt64, -math.MaxInt64 / dayNs * dayNs},
	}} {
		w := new(Wall)
		c := New(Spec{Every: Day}, nil, w)
		for _, s := range steps {
			w.Sync(s.serverNs, s.wallNs, s.serverNs)
			if got := c.EndNs(s.serverNs); got != s.endNs {
				t.Errorf("%s: got %d, want %d", s.name, got, s.endNs)
			}
		}
	}
}

// TestEndIsLater: whatever the clocks, and in any order, an end is after its time.
func TestEndIsLater(t *testing.T) {
	times := []int64{math.MinInt64, math.MinInt64 + 1, -dayNs, -1, 0, 1, dayNs, at(t, "2011-12-30T10:00:00Z"), math.MaxInt64 - dayNs, math.MaxInt64 - 1, math.MaxInt64}
	for e := range Everies {
		w := new(Wall)
		c := New(Spec{Every: e}, nil, w)
		for _, offsetNs := range times {
			w.offsetNs.Store(offsetNs)
			for _, nowNs := range times {
				if got := c.EndNs(nowNs); got <= nowNs && nowNs != math.MaxInt64 {
					t.Errorf("%s, offset %d: the end of %d is %d", e, offsetNs, nowNs, got)
				}
			}
		}
	}
}

// TestOlderWindowIsNotStored: a call of a time before the newest window does not replace it.
func TestOlderWindowIsNotStored(t *testing.T) {
	c := New(Spec{Every: Day}, nil, new(Wall))
	midnight := at(t, "2024-02-29T00:00:00Z")
	c.EndNs(midnight)
	newest := c.newest.Load()
	if got := c.EndNs(midnight - 1); got != midnight || c.newest.Load() != newest {
		t.Errorf("got the end %d, want %d", got, midnight)
	}
}

// TestShortWindowsAreSetBack: a clock set back by more than a window does not lengthen it.
func TestShortWindowsAreSetBack(t *testing.T) {
	w := new(Wall)
	c := New(Spec{Every: Minute}, nil, w)
	noon := at(t, "2024-02-29T12:00:00Z")
	c.EndNs(noon)
	for _, tt := range []struct{ byNs, wantNs int64 }{{30e9, noon + minuteNs + 30e9}, {61e9, noon + nsPerSec}} {
		w.offsetNs.Store(-tt.byNs)
		if got := c.EndNs(noon); got != tt.wantNs {
			t.Errorf("set back by %d: got %d, want %d", tt.byNs, got, tt.wantNs)
		}
	}
}

func TestEndsOfGoroutines(t *testing.T) {
	c := New(Spec{Every: Minute}, nil, new(Wall))
	begin := at(t, "2024-02-29T12:00:00Z")
	var all sync.WaitGroup
	for g := range int64(4) {
		all.Go(func() {
			lastNs := int64(0)
			for i := range int64(5000) {
				nowNs := begin + (i+g)*nsPerSec
				endNs := c.EndNs(nowNs)
				if endNs <= nowNs || endNs%minuteNs != 0 || endNs < lastNs {
					t.Errorf("the end of %d is %d, after %d", nowNs, endNs, lastNs)
				}
				lastNs = endNs
			}
		})
	}
	all.Wait()
}

func TestEndAllocatesNothing(t *testing.T) {
	c := New(spec(t, Month, "Europe/Berlin", "15"), zone(t, "Europe/Berlin"), new(Wall))
	nowNs := at(t, "2024-02-29T12:00:00Z")
	c.EndNs(nowNs)
	if n := testing.AllocsPerRun(100, func() { c.EndNs(nowNs) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEndNs(b *testing.B) {
	c := New(spec(b, Month, "Europe/Berlin", ""), zone(b, "Europe/Berlin"), new(Wall))
	nowNs := at(b, "2024-02-29T12:00:00Z")
	for b.Loop() {
		c.EndNs(nowNs)
	}
}

func BenchmarkWindow(b *testing.B) {
	s, location, wallNs := spec(b, Month, "Europe/Berlin", ""), zone(b, "Europe/Berlin"), at(b, "2024-02-29T12:00:00Z")
	for b.Loop() {
		s.Window(location, wallNs)
	}
}

package topkeys

import (
	"fmt"
	"math"
	"testing"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/test/racetest"
)

// rateOf returns a requested key's entry.
func rateOf(t *testing.T, tracker *Tracker, nowNs int64, name string) Entry {
	t.Helper()
	for _, e := range tracker.Top(Requested, nowNs, Counters) {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not among the hottest keys", name)
	return Entry{}
}

// TestRecentRates: the rate of the last ten seconds is independent of uptime, and absent for newer keys.
func TestRecentRates(t *testing.T) {
	tracker, s := newTracker(), Sampler{}
	now := t0
	second := func(perSec map[string]int) {
		for name, n := range perSec {
			calls(tracker, &s, now, n, name)
		}
		now += sec
	}
	for range 300 {
		second(map[string]int{"old": 20})
	}
	for i := range 40 {
		second(map[string]int{"old": 20, "new": 272})
		e := rateOf(t, tracker, now-1, "new")
		if e.IsRecent != (i > recentEpochs) || e.IsRecent && (e.Recent != 272 || e.RecentError != 0) {
			t.Errorf("%d s into a load of 272 per second: %g ± %g, known %t", i, e.Recent, e.RecentError, e.IsRecent)
		}
		if old := rateOf(t, tracker, now-1, "old"); !old.IsRecent || old.Recent != 20 {
			t.Errorf("a steady 20 per second: %g, known %t", old.Recent, old.IsRecent)
		}
	}
	for i := range 13 {
		second(nil)
		if e := rateOf(t, tracker, now, "new"); i >= recentEpochs && e.Recent != 0 {
			t.Errorf("%d s after the load: %g", i, e.Recent)
		}
	}
	for range recentEpochs / 2 {
		second(map[string]int{"new": 100})
	}
	if e := rateOf(t, tracker, now, "new"); e.Recent != 50 {
		t.Errorf("half of the time at 100 per second: %g", e.Recent)
	}
	now += int64(time.Minute)
	if e := rateOf(t, tracker, now, "new"); e.Recent != 0 || !e.IsRecent {
		t.Errorf("after a minute without calls: %g, known %t", e.Recent, e.IsRecent)
	}
}

// TestRecentRatesOfSamples: sampled rates are within their error from the eleventh second on.
func TestRecentRatesOfSamples(t *testing.T) {
	racetest.SkipAlone(t)
	const perSec = 20_000
	tracker, s := newTracker(), Sampler{}
	now := t0
	known, outside := 0, 0
	for i := range 60 {
		for n := range perSec {
			name := "hot"
			if n%4 != 0 {
				name = fmt.Sprint("key:", (i*perSec+n)%50_000)
			}
			calls(tracker, &s, now, 1, name)
			now += sec / perSec
		}
		e := rateOf(t, tracker, now, "hot")
		if !e.IsRecent {
			continue
		}
		known++
		if math.Abs(e.Recent-perSec/4) > e.RecentError {
			outside++
		}
	}
	if known < 45 || outside > known/5 {
		t.Errorf("of 60 s the rate was known in %d, and outside its error in %d of these", known, outside)
	}
}

// TestTakenOverCounter: a counter's new key inherits no recent calls.
func TestTakenOverCounter(t *testing.T) {
	s := NewSketch(1, 8)
	for range 2 * recentEpochs {
		s.Add([]byte("a"), 5, limiter.Terms{})
		s.advance(1)
	}
	if top := s.Top(1)[0]; !top.IsCounted || top.Recent != 5*recentEpochs {
		t.Errorf("before: %+v", top)
	}
	s.Add([]byte("b"), 1, limiter.Terms{})
	s.advance(1)
	if top := s.Top(1)[0]; top.Key != "b" || top.IsCounted || top.Recent != 1 {
		t.Errorf("after: %+v", top)
	}
}

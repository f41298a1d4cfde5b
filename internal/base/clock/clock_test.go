package clock

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const sec = int64(time.Second)

// TestNow: time passes, and Advance only adds to it.
func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := New(), time.Now().UnixNano()
		for _, tt := range []struct {
			passes time.Duration
			byNs   int64
			want   int64 // since the start
		}{
			{0, 0, 0},
			{time.Second, 0, sec},
			{0, 5 * sec, 6 * sec},
			{time.Second, -3 * sec, 7 * sec},
			{0, math.MinInt64, 7 * sec},
			{time.Second, 1, 8*sec + 1},
		} {
			time.Sleep(tt.passes)
			c.Advance(tt.byNs)
			if got := c.Now() - began; got != tt.want {
				t.Errorf("%+v: %d ns after the start", tt, got)
			}
		}
	})
}

// TestNotBefore: the clock does not follow a wall clock set back between processes.
func TestNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name             string
			markNs, offsetNs int64 // the mark since the start
		}{
			{"none was kept", math.MinInt64 / 2, 0},
			{"the clock went on", -sec, 0},
			{"it stands where it was", 0, 0},
			{"it went back", 1, 1},
			{"it went back by an hour", 3600 * sec, 3600 * sec},
		} {
			c, began := New(), time.Now().UnixNano()
			if got := c.NotBefore(began + tt.markNs); got != tt.offsetNs || c.Now() != began+tt.offsetNs {
				t.Errorf("%s: moved by %d ns, to %d ns after the start", tt.name, got, c.Now()-began)
			}
			if again := c.NotBefore(began + tt.markNs); again != 0 {
				t.Errorf("%s: moved again, by %d ns", tt.name, again)
			}
			time.Sleep(time.Second)
			if got := c.Now() - began; got != tt.offsetNs+sec {
				t.Errorf("%s: %d ns after the start, a second later", tt.name, got)
			}
		}
	})
}

// TestCatchUp: the clock advances by suspensions, not by the imprecision of readings.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = int64(time.Millisecond)
		suspendedNs, impreciseNs := 100*sec, 3*ms // before the start
		c := newClock(func() (leastNs, mostNs int64) { return suspendedNs - impreciseNs, suspendedNs + impreciseNs })
		began := c.Now()
		for _, tt := range []struct {
			name               string
			sleepsNs           int64
			impreciseNs, setNs int64
		}{
			{"nothing", 0, 3 * ms, 0},
			{"nothing, and far less precise", 0, 100 * sec, 0},
			{"nothing, and precise", 0, 0, 0},
			{"a minute", 60 * sec, 0, 60*sec - 3*ms}, // what New could not tell
			{"and no more", 0, 0, 0},
			{"too little", 10*ms - 1, 0, 0},
			{"together enough", 1, 0, 10 * ms},
			{"an hour, not precise", 3600 * sec, ms, 3600*sec - ms},
			{"not again when it is", 0, 0, 0},
			{"a day, as the thread lost its processor for longer", 86_400 * sec, 90_000 * sec, 0},
			{"which the next reading finds", 0, 0, 86_400*sec + ms},
		} {
			before := c.Now()
			suspendedNs, impreciseNs = suspendedNs+tt.sleepsNs, tt.impreciseNs
			if got := int64(c.CatchUp()); got != tt.setNs || c.Now()-before != tt.setNs {
				t.Errorf("%s: set forward by %d ns, says %d, want %d", tt.name, c.Now()-before, got, tt.setNs)
			}
		}
		if missingNs := suspendedNs - 100*sec - (c.Now() - began); missingNs < 0 || missingNs > 3*ms {
			t.Errorf("in the end %d ns are missing", missingNs)
		}
	})
}

// TestSuspendedHere reads the clocks of this machine, which stays awake.
func TestSuspendedHere(t *testing.T) {
	t.Parallel()
	leastNs, mostNs := suspended()
	if leastNs > mostNs {
		t.Errorf("suspended for at least %d ns and at most %d", leastNs, mostNs)
	}
	if by := New().CatchUp(); by != 0 {
		t.Errorf("set forward by %s", by)
	}
}

// TestConcurrentUse: time never goes back while others advance it.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	const times = 1000
	var sleptNs int64 // changed under the clock's mutex
	c := newClock(func() (leastNs, mostNs int64) {
		sleptNs += sec
		return sleptNs, sleptNs
	})
	began := c.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for last := began; last < began+times*sec; {
				now := c.Now()
				if now < last {
					t.Errorf("the clock went from %d to %d", last, now)
				}
				last = now
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range times {
				c.CatchUp()
				c.NotBefore(began)
			}
		})
	}
	all.Wait()
}

func TestNowDoesNotAllocate(t *testing.T) {
	c := New()
	if n := testing.AllocsPerRun(100, func() { c.Now() }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

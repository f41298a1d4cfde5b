package shadow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cellserver/internal/funnel"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
	ms  = int64(1_000_000)
)

func limitOf(t testing.TB, maxBurst, count, period int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Burst, maxBurst, count, period)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRequest on a funnel of 2 units, one leaking per second, with the clock known within 10 ms.
func TestRequest(t *testing.T) {
	l := limitOf(t, 1, 1, 1)
	at := func(offset int64) spans { return spans{{t0 + offset, t0 + offset}} }
	for _, tt := range []struct {
		name     string
		before   spans
		quantity int64
		after    spans
		verdict  verdict
	}{
		{"no key", at(-sec), 1, spans{{t0 + sec - 10*ms, t0 + sec + 10*ms}}, verdict{allowed: true}},
		{"exact", at(sec / 2), 1, at(sec/2 + sec), verdict{allowed: true}},
		{"limited", at(sec + sec/2), 1, at(sec + sec/2), verdict{limited: true}},
		{"too close to tell", at(sec), 1, spans{{t0 + sec, t0 + sec}, {t0 + 2*sec, t0 + 2*sec}}, verdict{true, true}},
		{"about to expire", at(11 * ms), 1, spans{{t0 + sec - 10*ms, t0 + sec + 11*ms}}, verdict{allowed: true}},
		{"more than fits", at(-sec), 3, at(-sec), verdict{limited: true}},
		{"a look", at(sec / 2), 0, at(sec / 2), verdict{allowed: true}},
		{"a refund", at(sec + sec/2), -1, at(sec / 2), verdict{allowed: true}},
		{"a refund of all", at(sec / 2), -1, spans{{t0 - 10*ms, t0 + 10*ms}}, verdict{allowed: true}},
		{"unknown", anyTAT(), 1, spans{{t0 + sec - 10*ms, math.MaxInt64}}, verdict{true, true}},
		{"two that become one", spans{{t0 - sec, t0 - sec}, {t0 - 2*sec, t0 - 2*sec}}, 1, spans{{t0 + sec - 10*ms, t0 + sec + 10*ms}}, verdict{allowed: true}},
	} {
		got, v := slices.Clone(tt.before).request(l, around(t0, 10*ms), tt.quantity)
		if !slices.Equal(got, tt.after) || v != tt.verdict {
			t.Errorf("%s: got %v, %+v, want %v, %+v", tt.name, got, v, tt.after, tt.verdict)
		}
	}
}

func TestHas(t *testing.T) {
	at := around(t0, 10*ms)
	for _, tt := range []struct {
		name  string
		tats  spans
		tatNs int64
		want  bool
	}{
		{"equal", spans{{t0 + sec, t0 + sec}}, t0 + sec, true},
		{"a nanosecond off", spans{{t0 + sec, t0 + sec}}, t0 + sec + 1, false},
		{"within the second", spans{{t0, t0}, {t0 + sec, t0 + 2*sec}}, t0 + 2*sec, true},
		{"between", spans{{t0, t0}, {t0 + sec, t0 + 2*sec}}, t0 + sec/2, false},
		{"gone, and empty", spans{{t0 - sec, t0 - sec}}, noTAT, true},
		{"gone, and about to be empty", spans{{t0 + 12*ms, t0 + sec}}, noTAT, true},
		{"gone too early", spans{{t0 + 13*ms, t0 + sec}}, noTAT, false},
		{"another time that has passed", spans{{t0 - sec, t0 - sec}}, t0 - 2*sec, true},
	} {
		if got := tt.tats.has(tt.tatNs, at); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestManySpans(t *testing.T) {
	var s spans
	for i := range int64(maxSpans + 1) {
		s = append(s, span{-i * 2, -i * 2})
	}
	if got := s.merged(); !slices.Equal(got, spans{{-2 * maxSpans, 0}}) {
		t.Errorf("got %v", got)
	}
}

// cell is a key of redis-cell, with its own clock and an expiry in milliseconds.
type cell struct {
	random *rand.Rand
	tatNs  int64
}

func (c *cell) throttle(l funnel.Limit, nowNs, quantity int64) {
	c.tatNs, _ = l.Throttle(c.at(nowNs), nowNs, quantity)
}

// at returns the TAT, noTAT once the key has expired.
func (c *cell) at(nowNs int64) int64 {
	if c.tatNs <= nowNs+c.random.Int64N(earlyNs) {
		c.tatNs = noTAT
	}
	return c.tatNs
}

// TestNoFalseDifference: with any clock within the tolerance, the source's state is among the possible ones.
// A different limit is noticed.
func TestNoFalseDifference(t *testing.T) {
	const toleranceNs = 10 * ms
	random := rand.New(rand.NewPCG(1, 2))
	for _, extra := range []int64{0, 1} { // units more in the source's funnel
		differences := 0
		for range 2000 {
			maxBurst, count := random.Int64N(5), 1+random.Int64N(40)
			here, there := limitOf(t, maxBurst, count, 1), limitOf(t, maxBurst+extra, count, 1)
			c, tats := &cell{random, noTAT}, anyTAT()
			for now := t0; now < t0+2*sec; now += random.Int64N(100 * ms) {
				quantity := random.Int64N(5) - 1
				c.throttle(there, now+random.Int64N(2*toleranceNs+1)-toleranceNs, quantity)
				tats, _ = tats.request(here, around(now, toleranceNs), quantity)
				if random.IntN(3) > 0 {
					continue
				}
				seen := c.at(now)
				if !tats.has(seen, around(now, toleranceNs)) {
					differences++
				}
				tats = spans{{seen, seen}}
			}
		}
		if extra == 0 && differences > 0 || extra > 0 && differences < 1000 {
			t.Errorf("%d units more: %d differences", extra, differences)
		}
	}
}

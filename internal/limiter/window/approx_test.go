package window

import (
	"math/rand/v2"
	"testing"

	"cellserver/internal/test/racetest"
)

// TestApproxError measures the claims of Approx's comment against an exact window with the same history.
func TestApproxError(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	for _, tt := range []struct {
		name        string
		nextNs      func(rng *rand.Rand) int64
		over, under int64 // in thousandths of maxCount, as is the sum of what was allowed
		sum         int64
	}{
		{"evenly, at half the rate", func(*rand.Rand) int64 { return 20 * ms }, 0, 0, 1000},
		{"at random, at half the rate", func(rng *rand.Rand) int64 { return int64(rng.ExpFloat64() * float64(20*ms)) }, 0, 0, 1000},
		{"at random, at the rate", func(rng *rand.Rand) int64 { return int64(rng.ExpFloat64() * float64(10*ms)) }, 50, 50, 990},
		{"at random, at twice the rate", func(rng *rand.Rand) int64 { return int64(rng.ExpFloat64() * float64(5*ms)) }, 10, 550, 990},
		{"at random, at ten times the rate", func(rng *rand.Rand) int64 { return int64(rng.ExpFloat64() * float64(ms)) }, 10, 950, 950},
		{"in bursts", func(rng *rand.Rand) int64 {
			if rng.IntN(400) == 0 {
				return rng.Int64N(10 * sec)
			}
			return ms / 10
		}, 600, 900, 990},
	} {
		var worst approxError
		worst.sum = 1000
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 4))
			e := measureApprox(mustLimit(t, 1000, 10), 50_000, func() int64 { return tt.nextNs(rng) })
			worst = approxError{max(worst.over, e.over), max(worst.under, e.under), min(worst.sum, e.sum)}
		}
		t.Logf("%s: %+v", tt.name, worst)
		if worst.over > tt.over || worst.under > tt.under || worst.sum < tt.sum {
			t.Errorf("%s: got %+v, want no worse than %d, %d and %d", tt.name, worst, tt.over, tt.under, tt.sum)
		}
	}
}

// TestApproxWorstCase reaches the bound of the error.
func TestApproxWorstCase(t *testing.T) {
	l := mustLimit(t, 1000, 10)
	for _, tt := range []struct {
		name        string
		firstNs     int64 // time of all but one unit of the first period, after its beginning
		over, under int64
	}{
		{"all at the end", 10*sec - 1, 990, 0},
		{"all at the beginning", 1, 0, 1000},
	} {
		call := -1
		e := measureApprox(l, 12_000, func() int64 {
			switch call++; call {
			case 0:
				return 0
			case 1:
				return tt.firstNs
			}
			if call <= 1000 {
				return 0
			}
			return ms
		})
		if e.over > 999 || e.under > 1000 || e.over < tt.over || e.under < tt.under {
			t.Errorf("%s: got %+v, want %d and %d", tt.name, e, tt.over, tt.under)
		}
	}
}

// approxError is the largest excess over maxCount, the largest room at a denial, and thousandths of an exact
// window's allowed units.
type approxError struct{ over, under, sum int64 }

func measureApprox(l Limit, calls int, nextNs func() int64) (e approxError) {
	approx, exact, nowNs := window{request: Limit.Approx}, window{request: Limit.Sliding}, t0
	var recent []int64
	sum, exactSum := int64(0), int64(0)
	for range calls {
		nowNs += nextNs()
		for len(recent) > 0 && recent[0] <= nowNs-int64(l.periodNs) {
			recent = recent[1:]
		}
		if r, _ := approx.ask(l, nowNs, 1, Options{}); r.Limited {
			e.under = max(e.under, l.maxCount-int64(len(recent)))
		} else {
			recent = append(recent, nowNs)
			e.over = max(e.over, int64(len(recent))-l.maxCount)
			sum++
		}
		if r, _ := exact.ask(l, nowNs, 1, Options{}); !r.Limited {
			exactSum++
		}
	}
	e.sum = sum * 1000 / exactSum
	return e
}

package funnel

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"cellserver/internal/test/racetest"
)

// tokenBucket is the funnel's mirror with fractional tokens: it begins full and is refilled evenly.
type tokenBucket struct {
	capacity, refill, periodSec int64
	tokens                      *big.Rat
	atNs                        int64
}

func (b *tokenBucket) take(nowNs, quantity int64) (allowed bool, left int64) {
	full := new(big.Rat).SetInt64(b.capacity)
	if b.tokens == nil {
		b.tokens = full
	} else {
		came := big.NewRat(nowNs-b.atNs, b.periodSec*sec)
		came.Mul(came, new(big.Rat).SetInt64(b.refill))
		if b.tokens = came.Add(came, b.tokens); b.tokens.Cmp(full) > 0 {
			b.tokens = full
		}
	}
	b.atNs = nowNs
	requested := new(big.Rat).SetInt64(quantity)
	if allowed = b.tokens.Cmp(requested) >= 0; allowed {
		b.tokens = requested.Sub(b.tokens, requested)
		if b.tokens.Cmp(full) > 0 {
			b.tokens = full
		}
	}
	return allowed, new(big.Int).Quo(b.tokens.Num(), b.tokens.Denom()).Int64()
}

// TestTokenBucketIsTheSame: tokens equal the funnel's free units. Periods not divisible by refill are
// omitted, as the interval is rounded down to nanoseconds.
func TestTokenBucketIsTheSame(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := tokenBucket{capacity: 1 + rng.Int64N(50), periodSec: 1 + rng.Int64N(60)}
		b.refill = 1 + rng.Int64N(50)
		for b.periodSec*sec%b.refill != 0 {
			b.refill--
		}
		l, tatNs, nowNs := mustLimit(t, Capacity, b.capacity, b.refill, b.periodSec), int64(0), t0
		paceNs := 1 + 2*int64(l.IntervalNs())
		for step := range 500 {
			if nowNs += rng.Int64N(paceNs); rng.IntN(40) == 0 {
				nowNs += rng.Int64N(2 * int64(l.ToleranceNs()))
			}
			quantity := rng.Int64N(4)
			switch rng.IntN(20) {
			case 0:
				quantity = -rng.Int64N(5)
			case 1:
				quantity = rng.Int64N(b.capacity + 3)
			}
			allowed, left := b.take(nowNs, quantity)
			newTATNs, r := l.Throttle(tatNs, nowNs, quantity)
			if tatNs = newTATNs; r.Limited == allowed || r.Remaining != left {
				t.Fatalf("seed %d, step %d, quantity %d: the funnel says %+v, the bucket allowed %v with %d left", seed, step, quantity, r, allowed, left)
			}
		}
	}
}

package funnel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestRebased: a debt is min(debt x new / old, max(new tolerance, debt)), rounded up, in numbers of any size.
func TestRebased(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 1))
	draw := func() int64 { return random.Int64() >> random.IntN(63) }
	for range 200_000 {
		l, err := NewLimitIn(Milliseconds, Capacity, 1+draw(), 1+draw(), 1+draw())
		if err != nil {
			continue
		}
		nowNs, fromNs := draw(), uint64(draw())
		tatNs := After(nowNs, uint64(draw()))
		want := big.NewInt(tatNs - nowNs)
		if debt := big.NewInt(tatNs - nowNs); fromNs != 0 {
			ceil := new(big.Int).Mul(debt, new(big.Int).SetUint64(l.IntervalNs()))
			ceil.Add(ceil, new(big.Int).SetUint64(fromNs-1)).Div(ceil, new(big.Int).SetUint64(fromNs))
			if want = ceil; want.Cmp(debt) > 0 {
				if most := new(big.Int).SetUint64(max(l.ToleranceNs(), uint64(tatNs-nowNs))); want.Cmp(most) > 0 {
					want = most
				}
			}
		}
		if want.Add(want, big.NewInt(nowNs)); want.Cmp(big.NewInt(math.MaxInt64)) > 0 {
			want.SetInt64(math.MaxInt64)
		}
		if got := l.Rebased(tatNs, nowNs, fromNs); got != want.Int64() {
			t.Fatalf("by %d ns, charged by %d: %d at %d becomes %d, want %d", l.IntervalNs(), fromNs, tatNs, nowNs, got, want)
		}
	}
	l, _ := NewLimit(Capacity, 5, 5, 60)
	if got := l.Rebased(5, 9, 7); got != 5 {
		t.Errorf("an empty funnel's TAT becomes %d", got)
	}
}

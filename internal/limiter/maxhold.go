package limiter

import (
	"math"
	"math/bits"
)

// BoundHolds bounds each hold to a share of the smallest capacity of the rules, rounded down, and to one unit
// at least. A share of 0 is no bound.
func (n *NamedLimit) BoundHolds(share float64) {
	n.held, n.MaxHold = share, 0
	if share <= 0 || len(n.Rules) == 0 {
		return
	}
	least := int64(math.MaxInt64)
	for i := range n.Rules {
		least = min(least, n.Rules[i].Rule.capacity())
	}
	n.MaxHold = max(1, shareOf(least, share))
}

// shareOf returns a share of units, at most all of them. It takes the share as decimal digits, of which a
// float64 is a little less or more: 0.29 of 100 is 29.
func shareOf(units int64, share float64) int64 {
	const parts = 1_000_000_000_000
	hi, lo := bits.Mul64(uint64(max(0, units)), uint64(math.Round(min(share, 1)*parts)))
	of, _ := bits.Div64(hi, lo, parts)
	return int64(of)
}

// capacity returns the units of a rule's limiter when empty.
func (r *Rule) capacity() int64 {
	if r.Kind == Funnel {
		return r.Funnel.Capacity()
	}
	return r.Packed[0]
}

package calendar

import (
	"math"
	"sync/atomic"

	"cellserver/internal/funnel"
)

// slackNs is the error of the offset that Sync tolerates, so that it does not tremble with the readings.
const slackNs = 1_000_000

// Wall converts the server's clock, which never steps, to the wall clock, which may. The zero Wall adds
// nothing.
type Wall struct{ offsetNs atomic.Int64 }

// OffsetNs returns what is added to the server's clock.
func (w *Wall) OffsetNs() int64 { return w.offsetNs.Load() }

// Sync compares the clocks: readings of the server's, the wall's and again the server's. The offset changes
// only if it is more than a millisecond off the interval that they allow, then to its middle.
func (w *Wall) Sync(beforeNs, wallNs, afterNs int64) {
	leastNs, mostNs := minus(wallNs, max(beforeNs, afterNs)), minus(wallNs, min(beforeNs, afterNs))
	offsetNs := w.offsetNs.Load()
	if offsetNs < funnel.Shift(leastNs, -slackNs) || offsetNs > funnel.Shift(mostNs, slackNs) {
		w.offsetNs.Store(funnel.After(leastNs, funnel.Since(leastNs, mostNs)/2))
	}
}

// minus returns a - b, saturating.
func minus(a, b int64) int64 {
	switch difference := a - b; {
	case a >= b && difference < 0:
		return math.MaxInt64
	case a < b && difference >= 0:
		return math.MinInt64
	default:
		return difference
	}
}

package calendar

import (
	"math"
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
)

// setBackNs is the largest step back of the wall clock, but for windows that are shorter, after which the
// newest window goes on: NTP and operators correct clocks by less, and a quota must not be granted twice. A
// clock that is corrected by more was wrong, and its window would lock customers out until a far end.
const setBackNs = int64(time.Hour)

// Calendar has the windows of a Spec by a wall clock, and caches the newest.
type Calendar struct {
	spec     Spec
	location *time.Location // nil for UTC
	wall     *Wall
	newest   atomic.Pointer[window]
}

// window is a window in the wall clock's time, immutable.
type window struct {
	startNs, endNs int64
	offsetNs       int64 // of the wall clock when it was found
}

// New returns the calendar of a checked Spec; a nil location is UTC.
func New(s Spec, location *time.Location, w *Wall) *Calendar {
	return &Calendar{spec: s.Normal(), location: location, wall: w}
}

// Spec returns the normal Spec.
func (c *Calendar) Spec() Spec { return c.spec }

// EndNs returns the end, by the server's clock, of the window that contains a time of it. It is later than
// nowNs, unless that is MaxInt64. A window never goes back when the wall clock is set back by setBackNs or
// less. Calls with an older time, read before the newest window, get the end of their own.
func (c *Calendar) EndNs(nowNs int64) int64 {
	offsetNs := c.wall.OffsetNs()
	wallNs := funnel.Shift(nowNs, offsetNs)
	w := c.newest.Load()
	if w == nil || !w.has(wallNs, offsetNs) {
		w = c.find(wallNs, offsetNs)
	}
	if w.endNs == math.MaxInt64 {
		return math.MaxInt64 // no end is known
	}
	return minus(w.endNs, offsetNs)
}

// Day returns the day of a time of the server's clock: the number of days since 1970 in the calendar's zone.
func (c *Calendar) Day(ns int64) int32 {
	at := time.Unix(0, funnel.Shift(ns, c.wall.OffsetNs()))
	if c.location == nil {
		at = at.UTC()
	} else {
		at = at.In(c.location)
	}
	_, offsetSec := at.Zone()
	const daySec = 24 * 3600
	return int32(floorDiv(at.Unix()+int64(offsetSec), daySec))
}

func (w *window) has(wallNs, offsetNs int64) bool {
	if w.startNs <= wallNs {
		return wallNs < w.endNs
	}
	return offsetNs < w.offsetNs && minus(w.startNs, wallNs) <= min(setBackNs, minus(w.endNs, w.startNs))
}

// find computes a window, and keeps it unless it is just before the newest.
func (c *Calendar) find(wallNs, offsetNs int64) *window {
	startNs, endNs := c.spec.Window(c.location, wallNs)
	found := &window{startNs, endNs, offsetNs}
	w := c.newest.Load()
	if w == nil || w.offsetNs != offsetNs || startNs > w.startNs || minus(w.startNs, wallNs) > setBackNs {
		c.newest.CompareAndSwap(w, found) // else another goroutine's is as new
	}
	return found
}

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

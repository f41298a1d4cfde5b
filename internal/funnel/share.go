package funnel

import "math"

// Share returns a share, above 0 and at most 1, of the limit's rate and capacity, but at least one unit if it
// had any.
func (l Limit) Share(share float64) Limit {
	if l.capacity < 1 || l.intervalNs == 0 || share >= 1 {
		return l
	}
	capacity := max(1, int64(float64(l.capacity)*share))
	intervalNs := MaxToleranceNs / uint64(capacity)
	if slower := math.Ceil(float64(l.intervalNs) / share); slower < float64(intervalNs) {
		intervalNs = uint64(slower)
	}
	return Limit{intervalNs: intervalNs, capacity: capacity}
}

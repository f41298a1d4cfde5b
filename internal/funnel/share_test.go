package funnel

import (
	"math"
	"testing"
)

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		maxBurst, count, periodSec int64
		share                      float64
		capacity                   int64
		intervalNs                 uint64
	}{
		{9, 1, 60, 1, 10, 60 * nsPerSec},
		{9, 1, 60, 0.5, 5, 120 * nsPerSec},
		{9, 1, 60, 0.25, 2, 240 * nsPerSec},
		{0, 1, 60, 0.01, 1, 6000 * nsPerSec},
		{0, 1, 1 << 32, 1e-9, 1, MaxToleranceNs},
		{1 << 31, 1, 1, 0.5, 1 << 30, 2 * nsPerSec},
		{math.MaxInt32, 1, 1, math.SmallestNonzeroFloat64, 1, MaxToleranceNs},
	} {
		l := mustLimit(t, Burst, tt.maxBurst, tt.count, tt.periodSec).Share(tt.share)
		if l.Capacity() != tt.capacity || l.IntervalNs() != tt.intervalNs || l.ToleranceNs() != tt.intervalNs*uint64(tt.capacity) {
			t.Errorf("%+v: got %+v", tt, l)
		}
	}
	if l := (Limit{}).Share(0.5); l != (Limit{}) {
		t.Errorf("of nothing: %+v", l)
	}
}

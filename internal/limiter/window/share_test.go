package window

import "testing"

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		maxCount int64
		share    float64
		want     int64
	}{{10, 1, 10}, {10, 0.5, 5}, {10, 0.25, 2}, {1, 0.1, 1}} {
		l := mustLimit(t, tt.maxCount, 60)
		if got := l.Share(tt.share); got.maxCount != tt.want || got.periodNs != l.periodNs {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
	if l := (Limit{}).Share(0.5); l != (Limit{}) {
		t.Errorf("of nothing: %+v", l)
	}
}

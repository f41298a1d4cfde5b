package bucket

import "testing"

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		capacity int64
		share    float64
		want     int64
	}{{10, 1, 10}, {10, 0.5, 5}, {10, 0.25, 2}, {1, 0.1, 1}} {
		if got := mustLimit(t, tt.capacity).Share(tt.share); got.capacity != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
	if l := (Limit{}).Share(0.5); l != (Limit{}) {
		t.Errorf("of nothing: %+v", l)
	}
}

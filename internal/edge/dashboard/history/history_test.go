package history

import (
	"testing"
	"time"

	"cellserver/internal/decide/histogram"
)

// TestSuspendedServer checks that the history stays within 15 minutes although samples came late.
func TestSuspendedServer(t *testing.T) {
	var h History
	none := histogram.NewScale().NewDurations()
	nowNs := int64(1_700_000_000_000_000_000)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {Interval, 1}, {Interval, 2}, {Span - Interval, 2}, {Interval, 2}, {time.Hour, 1}} {
		nowNs += int64(tt.after)
		h.Add(nowNs, Sample{}, none)
		if points, _, _ := h.Points(); len(points) != tt.want || len(points) > 0 && points[len(points)-1].AtNs != nowNs {
			t.Errorf("after %s: %d points, want %d", tt.after, len(points), tt.want)
		}
	}
}

// TestMinutes checks that the current minute is left out unless it is the only one.
func TestMinutes(t *testing.T) {
	at := func(i int) Point {
		return Point{Sample: &Sample{Keys: i}, before: &Sample{}, AtNs: int64(i) * int64(Interval), sec: 1}
	}
	var points []Point
	for i := range 75 { // two and a half minutes
		points = append(points, at(i))
	}
	for _, tt := range []struct {
		name   string
		points []Point
		keys   []int
	}{
		{"none", nil, nil},
		{"the first minute", points[:3], []int{2}},
		{"the second minute", points[:33], []int{29}},
		{"a gap", []Point{at(0), at(150), at(180)}, []int{150, 0}},
	} {
		got := Minutes(tt.points)
		if len(got) != len(tt.keys) {
			t.Fatalf("%s: %d minutes, want %d", tt.name, len(got), len(tt.keys))
		}
		for i, keys := range tt.keys {
			if got[i].Keys != keys {
				t.Errorf("%s: %d keys in minute %d, want %d", tt.name, got[i].Keys, i, keys)
			}
		}
	}
}

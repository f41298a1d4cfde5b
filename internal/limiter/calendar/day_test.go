package calendar

import (
	"math"
	"testing"
	"time"
)

// TestDay: the day of a zone begins at its midnight, also where that is skipped or comes twice, and moves
// with the wall clock.
func TestDay(t *testing.T) {
	day := func(date string) int32 { return int32(at(t, date+"T00:00:00Z") / dayNs) }
	for _, tt := range []struct{ zone, time, want string }{
		{"", "1970-01-01T00:00:00Z", "1970-01-01"},
		{"", "1969-12-31T23:59:59Z", "1969-12-31"},
		{"", "2026-02-28T23:59:59Z", "2026-02-28"},
		{"", "2026-03-01T00:00:00Z", "2026-03-01"},
		{"Asia/Shanghai", "2025-12-31T15:59:59Z", "2025-12-31"},
		{"Asia/Shanghai", "2025-12-31T16:00:00Z", "2026-01-01"},
		{"America/New_York", "2026-03-08T04:59:59Z", "2026-03-07"}, // the day that has 23 hours
		{"America/New_York", "2026-03-08T05:00:00Z", "2026-03-08"},
		{"America/New_York", "2026-03-09T03:59:59Z", "2026-03-08"},
		{"America/New_York", "2026-03-09T04:00:00Z", "2026-03-09"},
		{"America/New_York", "2026-11-01T04:00:00Z", "2026-11-01"}, // the day that has 25
		{"America/New_York", "2026-11-02T04:59:59Z", "2026-11-01"},
		{"America/New_York", "2026-11-02T05:00:00Z", "2026-11-02"},
		{"America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03"}, // it has no midnight
		{"America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-04"},
		{"America/Havana", "2026-11-01T04:00:00Z", "2026-11-01"}, // its first hour comes twice
		{"America/Havana", "2026-11-01T05:30:00Z", "2026-11-01"},
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29"}, // there is no 30th
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31"},
		{"Asia/Kathmandu", "2026-01-01T18:14:59Z", "2026-01-01"},
		{"Asia/Kathmandu", "2026-01-01T18:15:00Z", "2026-01-02"},
	} {
		var location *time.Location
		if tt.zone != "" {
			var err error
			if location, err = time.LoadLocation(tt.zone); err != nil {
				t.Fatal(err)
			}
		}
		w := new(Wall)
		c := New(Spec{Every: Month, Zone: tt.zone}, location, w)
		if got, want := c.Day(at(t, tt.time)), day(tt.want); got != want {
			t.Errorf("%s in %s: day %d, want %d", tt.time, tt.zone, got, want)
		}
		w.offsetNs.Store(-40 * dayNs)
		if got, want := c.Day(at(t, tt.time)+40*dayNs), day(tt.want); got != want {
			t.Errorf("%s in %s, 40 days ahead: day %d, want %d", tt.time, tt.zone, got, want)
		}
	}
	c := New(Spec{Every: Day}, nil, new(Wall))
	for _, ns := range []int64{math.MinInt64, math.MaxInt64} {
		want := ns / dayNs
		if ns < 0 {
			want--
		}
		if got := c.Day(ns); int64(got) != want {
			t.Errorf("at %d ns: day %d, want %d", ns, got, want)
		}
	}
}

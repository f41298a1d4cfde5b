package namedlimit

import (
	"testing"
	"time"

	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// TestSpentAt: the day is that of the zone of the limit's first quota, as it is now, else of UTC.
func TestSpentAt(t *testing.T) {
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	utc := int32(at.Unix() / 86_400)
	quota := func(every calendar.Every, zone string) Rule {
		return Rule{Algorithm: Quota, Capacity: 9, Calendar: calendar.Spec{Every: every, Zone: zone}}
	}
	r := newRegistry()
	for _, tt := range []struct {
		rules []Rule
		want  int32
	}{
		{[]Rule{perMinute(5, 5)}, utc},
		{[]Rule{quota(calendar.Day, "")}, utc},
		{[]Rule{perMinute(5, 5), quota(calendar.Month, "Asia/Shanghai"), quota(calendar.Day, "America/New_York")}, utc + 1},
		{[]Rule{quota(calendar.Year, "Pacific/Kiritimati")}, utc + 1},
		{[]Rule{quota(calendar.Day, "America/New_York"), quota(calendar.Month, "Asia/Shanghai")}, utc},
	} {
		mustSet(t, r, of(tt.rules...))
		if got, defined := r.SpentAt([]byte("a"), at.UnixNano()); got != (store.SpentAt{Limit: "a", Day: tt.want}) || !defined {
			t.Errorf("%v: got %v, want day %d", tt.rules, got, tt.want)
		}
	}
	mustSet(t, r, of(quota(calendar.Day, "Asia/Shanghai")))
	if _, err := r.Delete("a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "", "never"} {
		if got, defined := r.SpentAt([]byte(name), at.UnixNano()); got != (store.SpentAt{Limit: name, Day: utc}) || defined {
			t.Errorf("no limit %q: got %v", name, got)
		}
	}
	name := []byte("a")
	mustSet(t, r, of(quota(calendar.Day, "Asia/Shanghai")))
	if allocs := testing.AllocsPerRun(100, func() { r.SpentAt(name, at.UnixNano()) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

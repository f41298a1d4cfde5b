package calendar

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zones
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	if name == "" {
		return nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func spec(t testing.TB, e Every, zone, start string) Spec {
	t.Helper()
	s := Spec{Every: e, Zone: zone}
	if start != "" {
		var err error
		if s.Start, err = ParseStart(e, []byte(start)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// at returns the Unix nanoseconds of an RFC 3339 time.
func at(t testing.TB, text string) int64 {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.UnixNano()
}

func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		name             string
		every            Every
		zone, start      string
		wall, begin, end string
	}{
		{"second", Second, "", "", "2024-02-29T12:34:56.7Z", "2024-02-29T12:34:56Z", "2024-02-29T12:34:57Z"},
		{"minute", Minute, "", "", "2024-02-29T12:34:56.7Z", "2024-02-29T12:34:00Z", "2024-02-29T12:35:00Z"},
		{"hour", Hour, "", "", "2024-02-29T12:34:56.7Z", "2024-02-29T12:00:00Z", "2024-02-29T13:00:00Z"},
		{"day", Day, "", "", "2024-02-29T12:34:56.7Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"a day before 1970", Day, "", "", "1969-12-31T23:59:59.9Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"a day from 06:00, before", Day, "", "06:00", "2024-02-29T05:59:59.9Z", "2024-02-28T06:00:00Z", "2024-02-29T06:00:00Z"},
		{"a day from 06:00, at", Day, "", "06:00", "2024-02-29T06:00:00Z", "2024-02-29T06:00:00Z", "2024-03-01T06:00:00Z"},
		{"week", Week, "", "", "2024-03-03T23:59:59Z", "2024-02-26T00:00:00Z", "2024-03-04T00:00:00Z"},
		{"a week from Sunday", Week, "", "7", "2024-03-03T00:00:00Z", "2024-03-03T00:00:00Z", "2024-03-10T00:00:00Z"},
		{"month", Month, "", "", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"a month from the 31st", Month, "", "31", "2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z"},
		{"a month from the 31st, before", Month, "", "31", "2023-02-27T12:00:00Z", "2023-01-31T00:00:00Z", "2023-02-28T00:00:00Z"},
		{"a month over the new year", Month, "", "15", "2024-01-14T12:00:00Z", "2023-12-15T00:00:00Z", "2024-01-15T00:00:00Z"},
		{"year", Year, "", "", "2024-12-31T23:00:00Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"a year from 29 February", Year, "", "02-29", "2024-02-28T23:00:00Z", "2023-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"a year from 29 February, at", Year, "", "02-29", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z"},

		{"23 hours", Day, "Europe/Berlin", "", "2024-03-31T12:00:00+02:00", "2024-03-31T00:00:00+01:00", "2024-04-01T00:00:00+02:00"},
		{"25 hours", Day, "Europe/Berlin", "", "2024-10-27T12:00:00+01:00", "2024-10-27T00:00:00+02:00", "2024-10-28T00:00:00+01:00"},
		{"in a gap", Day, "Europe/Berlin", "02:30", "2024-03-31T12:00:00+02:00", "2024-03-31T03:00:00+02:00", "2024-04-01T02:30:00+02:00"},
		{"the first of two", Day, "Europe/Berlin", "02:30", "2024-10-27T02:30:00+01:00", "2024-10-27T02:30:00+02:00", "2024-10-28T02:30:00+01:00"},
		{"before the first of two", Day, "Europe/Berlin", "02:30", "2024-10-27T02:29:59+02:00", "2024-10-26T02:30:00+02:00", "2024-10-27T02:30:00+02:00"},
		{"shown again after a boundary", Day, "Europe/Berlin", "02:30", "2024-10-27T02:10:00+01:00", "2024-10-27T02:30:00+02:00", "2024-10-28T02:30:00+01:00"},
		{"a gap at midnight", Day, "America/Sao_Paulo", "", "2018-11-04T12:00:00-02:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		{"two midnights", Day, "America/Havana", "", "2024-11-03T12:00:00-05:00", "2024-11-03T00:00:00-04:00", "2024-11-04T00:00:00-05:00"},
		{"half an hour", Day, "Australia/Lord_Howe", "", "2024-04-07T12:00:00+10:30", "2024-04-07T00:00:00+11:00", "2024-04-08T00:00:00+10:30"},
		{"before a lost day", Day, "Pacific/Apia", "", "2011-12-29T12:00:00-10:00", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"after a lost day", Day, "Pacific/Apia", "", "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		{"a week without a day", Week, "Pacific/Apia", "", "2011-12-28T12:00:00-10:00", "2011-12-26T00:00:00-10:00", "2012-01-02T00:00:00+14:00"},
		{"a month of a zone", Month, "America/New_York", "", "2024-03-31T23:59:59-04:00", "2024-03-01T00:00:00-05:00", "2024-04-01T00:00:00-04:00"},
		{"31 December of a leap year", Day, "Europe/Berlin", "", "2096-12-31T12:00:00+01:00", "2096-12-31T00:00:00+01:00", "2097-01-01T00:00:00+01:00"},
		{"a year of a zone", Year, "Europe/Berlin", "04-01", "2096-12-31T12:00:00+01:00", "2096-04-01T00:00:00+02:00", "2097-04-01T00:00:00+02:00"},
		{"a day twice, before 1900", Day, "America/Juneau", "", "1867-10-19T12:00:00Z", "1867-10-18T08:57:41Z", "1867-10-20T08:57:41Z"},
	} {
		begin, end := spec(t, tt.every, tt.zone, tt.start).Window(zone(t, tt.zone), at(t, tt.wall))
		if begin != at(t, tt.begin) || end != at(t, tt.end) {
			t.Errorf("%s: got %s to %s", tt.name, time.Unix(0, begin).In(zone(t, "UTC")), time.Unix(0, end).UTC())
		}
	}
}

func TestWindowsSinceTheEpoch(t *testing.T) {
	wallNs := at(t, "2024-02-29T12:34:56.7Z")
	for e, lengthSec := range map[Every]int64{Second: 1, Minute: 60, Hour: 3600, Day: 86400, Week: 604800, Month: 30 * 86400, Year: 365 * 86400} {
		begin, end := Spec{Every: e, Epoch: true}.Window(nil, wallNs)
		if begin > wallNs || end <= wallNs || begin%(lengthSec*nsPerSec) != 0 || end-begin != lengthSec*nsPerSec {
			t.Errorf("%s: got %d to %d", e, begin, end)
		}
	}
}

func TestWindowSaturates(t *testing.T) {
	for e := range Everies {
		for _, epoch := range []bool{false, true} {
			s := Spec{Every: e, Epoch: epoch}
			if begin, end := s.Window(nil, math.MaxInt64); begin <= 0 || end != math.MaxInt64 {
				t.Errorf("%s, the last time: got %d to %d", e, begin, end)
			}
			if begin, end := s.Window(nil, math.MinInt64); begin != math.MinInt64 || end >= 0 {
				t.Errorf("%s, the first time: got %d to %d", e, begin, end)
			}
		}
	}
}

// TestVectors compares windows with those that testdata/vectors.py finds by other means.
func TestVectors(t *testing.T) {
	file, err := os.Open("testdata/vectors.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 2000 {
		t.Fatalf("only %d rows", len(rows))
	}
	zones := map[string]*time.Location{}
	for _, row := range rows[1:] {
		every, ok := EveryOf([]byte(row[1]))
		var numbers [3]int64
		for i := range numbers {
			if numbers[i], err = strconv.ParseInt(row[4+i], 10, 64); err != nil {
				ok = false
			}
		}
		if !ok {
			t.Fatalf("%v: not a vector", row)
		}
		if _, ok := zones[row[0]]; !ok {
			zones[row[0]] = zone(t, row[0])
		}
		s := spec(t, every, row[0], row[2])
		s.Epoch = row[3] == "1"
		beginNs, endNs := s.Window(zones[row[0]], numbers[0]*nsPerSec)
		if beginNs != numbers[1]*nsPerSec || endNs != numbers[2]*nsPerSec {
			t.Errorf("%v: got %d to %d", row, beginNs/nsPerSec, endNs/nsPerSec)
		}
	}
}

// FuzzWindow: windows contain their time, and each begins where the one before ends.
func FuzzWindow(f *testing.F) {
	names := [...]string{
		"", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
		"America/Sao_Paulo", "America/Havana", "Africa/Cairo", "America/St_Johns", "Europe/Dublin", "Pacific/Kwajalein",
		"America/Juneau", "Asia/Manila", "Africa/Monrovia", "Antarctica/Troll",
	}
	zones := map[string]*time.Location{"far": time.FixedZone("far", math.MaxInt32), "near": time.FixedZone("near", math.MinInt32)}
	for _, name := range names {
		zones[name] = zone(f, name)
	}
	all := append(names[:], "far", "near")
	for _, wallNs := range []int64{0, math.MaxInt64, math.MinInt64, at(f, "2011-12-30T10:00:00Z"), at(f, "2096-12-31T12:00:00Z"), at(f, "1867-10-19T00:00:00Z")} {
		for e := range Everies {
			f.Add(wallNs, uint8(e), uint8(5), uint16(27), false)
			f.Add(wallNs, uint8(e), uint8(13), uint16(58), false)
			f.Add(wallNs, uint8(e), uint8(17), uint16(0), false)
			f.Add(wallNs, uint8(e), uint8(18), uint16(3), false)
			f.Add(wallNs, uint8(e), uint8(0), uint16(0), true)
		}
	}
	f.Fuzz(func(t *testing.T, wallNs int64, every, zone uint8, start uint16, epoch bool) {
		s := Spec{Every: Every(every), Zone: all[int(zone)%len(all)], Start: Start(start), Epoch: epoch}
		if s.Check() != nil {
			t.Skip()
		}
		location := zones[s.Zone]
		begin, end := s.Window(location, wallNs)
		if begin > wallNs || end < wallNs || end == wallNs && wallNs != math.MaxInt64 {
			t.Fatalf("%+v at %d: got %d to %d", s, wallNs, begin, end)
		}
		if end != math.MaxInt64 {
			if next, _ := s.Window(location, end); next != end {
				t.Errorf("%+v: the window after %d begins at %d", s, end, next)
			}
		}
		if begin != math.MinInt64 {
			if again, sameEnd := s.Window(location, begin); again != begin || sameEnd != end {
				t.Errorf("%+v: the window of %d is %d to %d, not to %d", s, begin, again, sameEnd, end)
			}
			if _, before := s.Window(location, begin-1); before != begin {
				t.Errorf("%+v: the window before %d ends at %d", s, begin, before)
			}
		}
	})
}

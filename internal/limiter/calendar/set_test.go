package calendar

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSetHoldsCalendars(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	seen := map[*Calendar]Spec{}
	for _, want := range []Spec{
		{}, {Every: Day}, {Every: Day, Epoch: true}, {Every: Day, Zone: "Europe/Berlin"}, {Every: Day, Zone: "Europe/Paris"},
		{Every: Day, Zone: "Europe/Berlin", Start: 1}, {Every: Week, Zone: "Europe/Berlin", Start: 1},
	} {
		c, err := s.Of(want)
		if err != nil {
			t.Fatal(err)
		}
		if c.Spec() != want || seen[c] != (Spec{}) {
			t.Errorf("%+v: got %+v", want, c.Spec())
		}
		seen[c] = want
		if again, err := s.Find(want.Every, []byte(want.Zone), want.Start, want.Epoch); err != nil || again != c && s.held(c) {
			t.Errorf("%+v: found another, %v", want, err)
		}
	}
}

func (s *Set) held(c *Calendar) bool {
	return s.slot(c.spec.Every, []byte(c.spec.Zone), c.spec.Start, c.spec.Epoch).Load() == c
}

func TestSetOfUTC(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	c, err := s.Of(Spec{Every: Hour})
	if err != nil {
		t.Fatal(err)
	}
	if named, err := s.Of(Spec{Every: Hour, Zone: "UTC"}); err != nil || named != c {
		t.Errorf("of UTC: got another calendar, %v", err)
	}
	if named, err := s.Find(Hour, []byte("UTC"), 0, false); err != nil || named != c {
		t.Errorf("found for UTC: got another calendar, %v", err)
	}
}

// TestSetIsBounded: more Specs than slots replace each other, and every answer is right.
func TestSetIsBounded(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	for range 2 {
		for start := range Start(minutesPerDay) {
			c, err := s.Find(Day, nil, start, false)
			if err != nil || c.Spec() != (Spec{Every: Day, Start: start}) {
				t.Fatalf("start %d: got %+v, %v", start, c.Spec(), err)
			}
		}
	}
	held := 0
	for i := range s.table {
		if s.table[i].Load() != nil {
			held++
		}
	}
	if held < slots/4 {
		t.Errorf("%d calendars held: the hash does not spread", held)
	}
}

// TestSetComparesInFull: calendars in a slot of another Spec are not taken for its own.
func TestSetComparesInFull(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{Every: Week}
	for _, other := range []Spec{{Every: Day}, {Every: Week, Epoch: true}, {Every: Week, Start: 1}, {Every: Week, Zone: "Europe/Berlin"}} {
		s.slot(want.Every, nil, want.Start, want.Epoch).Store(New(other, berlin, s.wall))
		if c, err := s.Find(want.Every, nil, want.Start, want.Epoch); err != nil || c.Spec() != want {
			t.Errorf("found %+v, %v", c.Spec(), err)
		}
	}
}

func TestSetErrors(t *testing.T) {
	loads := 0
	s := NewSet(new(Wall), func(name string) (*time.Location, error) {
		loads++
		return nil, fmt.Errorf("unknown time zone %s", name)
	})
	const advice = "; use an IANA name, such as Europe/Berlin"
	for _, tt := range []struct {
		zone, quoted string
		loads        int
	}{
		{"Europ/Berlin", "'Europ/Berlin'", 1},
		{"utc", "'utc'", 1},
		{"Local", "'Local'", 0},
		{"localtime", "'localtime'", 0},
		{"right/Europe/Berlin", "'right/Europe/Berlin'", 0},
		{"../../etc/passwd", "'../../etc/passwd'", 0},
		{"/etc/localtime", "'/etc/localtime'", 0},
		{"Europe\\Berlin", "'Europe\\Berlin'", 0},
		{"Z\u00fcrich\r\n", "'Z??rich??'", 0},
		{strings.Repeat("x", 64), "'" + strings.Repeat("x", 64) + "'", 1},
		{strings.Repeat("x", 65), "'" + strings.Repeat("x", 64) + "'...", 0},
	} {
		loads = 0
		_, err := s.Find(Day, []byte(tt.zone), 0, false)
		if err == nil || err.Error() != "unknown time zone "+tt.quoted+advice || loads != tt.loads {
			t.Errorf("%q: got %v after %d loads", tt.zone, err, loads)
		}
	}
	if _, err := s.Find(Hour, []byte("Europe/Berlin"), 0, false); err == nil || !strings.Contains(err.Error(), "a day or longer") {
		t.Errorf("an hour of a zone: got %v", err)
	}
}

func TestSetOfGoroutines(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	var all sync.WaitGroup
	var found [8]*Calendar
	for g := range found {
		all.Go(func() {
			c, err := s.Find(Day, []byte("Europe/Berlin"), 0, false)
			if err != nil {
				t.Error(err)
			}
			found[g] = c
		})
	}
	all.Wait()
	for _, c := range found {
		if c != found[0] {
			t.Error("two calendars of a Spec")
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	s := NewSet(new(Wall), time.LoadLocation)
	for _, name := range []string{"", "UTC", "America/Argentina/ComodRivadavia"} {
		zone := []byte(name)
		find := func() {
			if _, err := s.Find(Day, zone, 5, false); err != nil {
				t.Error(err)
			}
		}
		find()
		if n := testing.AllocsPerRun(100, find); n != 0 {
			t.Errorf("%q: %v allocations", name, n)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	s := NewSet(new(Wall), time.LoadLocation)
	zone := []byte("Europe/Berlin")
	for b.Loop() {
		if _, err := s.Find(Day, zone, 0, false); err != nil {
			b.Fatal(err)
		}
	}
}

package acl

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

const sec = int64(time.Second)

// TestLog: grouping and order were verified with ACL LOG of redis-server 7.0.15.
func TestLog(t *testing.T) {
	l := NewLog(DefaultLogEntries)
	get := Denial{Reason: DeniedKey, Context: "toplevel", Object: "k", Username: "u", ClientInfo: "id=1"}
	for i, step := range []struct {
		at     int64
		change func(d *Denial)
		want   string // the latest entry: ID, count, age when read a second later
		total  int
	}{
		{0, func(*Denial) {}, "0 1 1", 1},
		{1 * sec, func(*Denial) {}, "0 2 1", 1},
		{61 * sec, func(*Denial) {}, "0 3 1", 1},
		{61*sec + 60*sec + 1, func(*Denial) {}, "1 1 1", 2},
		{122 * sec, func(d *Denial) { d.Context = "multi" }, "2 1 1", 3},
		{122 * sec, func(d *Denial) { d.Reason = DeniedCommand }, "3 1 1", 4},
		{122 * sec, func(d *Denial) { d.Object = "j" }, "4 1 1", 5},
		{122 * sec, func(d *Denial) { d.Username = "v" }, "5 1 1", 6},
		{123 * sec, func(d *Denial) { d.ClientInfo = "id=2" }, "1 2 1", 6},
		{100 * sec, func(*Denial) {}, "1 3 1", 6}, // the clock went back
		{40 * sec, func(*Denial) {}, "1 4 1", 6},
		{-20*sec - 1, func(*Denial) {}, "6 1 1", 7},
	} {
		d := get
		step.change(&d)
		l.Add(step.at, d)
		all := l.Entries(100)
		e := all[0]
		got := strings.Join([]string{strconv.FormatInt(e.ID, 10), strconv.FormatInt(e.Count, 10),
			strconv.FormatFloat(e.AgeSeconds(step.at+sec+999), 'g', -1, 64)}, " ")
		if got != step.want || len(all) != step.total || e.ClientInfo != d.ClientInfo || e.UpdatedNs != step.at {
			t.Errorf("step %d: %+v of %d, want %s of %d", i, e, len(all), step.want, step.total)
		}
	}
	if last := l.Entries(100)[6]; last.CreatedNs != 0 || last.UpdatedNs != 61*sec {
		t.Errorf("the oldest: %+v", last)
	}
	if n := len(l.Entries(2)); n != 2 {
		t.Errorf("%d entries of 2", n)
	}
	l.Reset()
	if n := len(l.Entries(100)); n != 0 {
		t.Errorf("%d entries after a reset", n)
	}
}

func TestLogBounds(t *testing.T) {
	l := NewLog(20)
	for round := range 2 { // an equal denial beyond the latest ten is a new entry
		for i := range 11 {
			l.Add(0, Denial{Reason: DeniedAuth, Username: strconv.Itoa(i)})
		}
		if n, want := len(l.Entries(100)), []int{11, 20}[round]; n != want {
			t.Errorf("round %d: %d entries, want %d", round, n, want)
		}
	}
	l.Add(0, Denial{Object: strings.Repeat("k", 1<<20), Username: strings.Repeat("u", 1<<20)})
	if e := l.Entries(1)[0]; len(e.Object) != maxFieldBytes || len(e.Username) != maxFieldBytes {
		t.Errorf("keeps %d and %d bytes", len(e.Object), len(e.Username))
	}
}

package limiter

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// TestQuotaVectors runs the calls of quota.py, of quotas and of debits, with its answers.
func TestQuotaVectors(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("testdata", "quota.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	calendars := calendar.NewSet(&calendar.Wall{}, zones.Load)
	states := map[string]*State{}
	for i, cells := range rows[1:] {
		row := quotaRow{t, column, cells}
		r := row.rule(calendars)
		s := states[row.text("key")]
		if s == nil {
			s = &State{}
			states[row.text("key")] = s
		}
		got := mustDecide(t, &r, s, row.number("at_ns"), row.number("quantity"))
		want := funnel.Result{
			Limited: row.number("limited") == 1, Limit: row.number("limit"), Remaining: row.number("remaining"),
			RetryAfter: row.number("retry_after"), ResetAfter: row.number("reset_after"),
		}
		if row.number("cut") == 1 {
			want.Marks = funnel.Cut
		}
		if got != want {
			t.Fatalf("line %d: %v: got %+v", i+2, cells, got)
		}
	}
}

// quotaRow is a row of quota.csv.
type quotaRow struct {
	t      *testing.T
	column map[string]int
	cells  []string
}

func (row *quotaRow) text(name string) string { return row.cells[row.column[name]] }

func (row *quotaRow) number(name string) int64 {
	n, err := strconv.ParseInt(row.text(name), 10, 64)
	if err != nil {
		row.t.Fatalf("%v: %s: %v", row.cells, name, err)
	}
	return n
}

func (row *quotaRow) rule(calendars *calendar.Set) (r Rule) {
	kind, _ := KindOf(row.text("kind"))
	spec := Spec{Kind: kind, Flags: Flags(row.number("flags")), Unit: funnel.WholeSeconds}
	spec.Numbers = Numbers{row.number("max_count"), row.number("period")}
	switch kind {
	case Funnel:
		spec.Unit, spec.Reading = funnel.Seconds, funnel.Capacity
		spec.Numbers = Numbers{row.number("max_count"), row.number("count"), row.number("period")}
	case Quota:
		spec.Calendar = row.calendar(calendars)
	default:
	}
	if err := spec.Build(&r); err != nil {
		row.t.Fatalf("%v: %v", row.cells, err)
	}
	return r
}

func (row *quotaRow) calendar(calendars *calendar.Set) *calendar.Calendar {
	every, ok := calendar.EveryOf([]byte(row.text("every")))
	if !ok {
		row.t.Fatalf("%v: no window", row.cells)
	}
	var start calendar.Start
	var err error
	if text := row.text("start"); text != "" {
		if start, err = calendar.ParseStart(every, []byte(text)); err != nil {
			row.t.Fatal(err)
		}
	}
	c, err := calendars.Find(every, []byte(row.text("zone")), start, row.text("epoch") == "1")
	if err != nil {
		row.t.Fatal(err)
	}
	return c
}

package limiter

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

func BenchmarkDecide(b *testing.B) {
	for _, kind := range []Kind{Funnel, FixedWindow, SlidingWindow, ApproxWindow, Bucket, Named} {
		b.Run(kind.Type(), func(b *testing.B) {
			r := ruleOf(b, kind)
			s := r.Full(t0)
			if kind == Bucket {
				mustDo(b, &s, t0, &Operation{Verb: Fill, Max: 1 << 60})
			}
			nowNs := t0
			for b.Loop() {
				nowNs += 6 * sec
				if _, _, err := r.Decide(&s, nowNs, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestVectors runs 3,000 calls whose answers were computed in Python by lists of units, fractions and
// bisection.
func TestVectors(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("testdata", "siblings.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]Kind{}
	for kind := Reserving + 1; kind < Kinds; kind++ {
		kinds[kind.Type()] = kind
	}
	states := map[string]*State{}
	for i, row := range rows[1:] {
		var n [12]int64
		for column, text := range row {
			if column == 1 || column == 2 {
				continue
			}
			if n[column], err = strconv.ParseInt(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		r := Rule{Kind: kinds[row[2]], Flags: Flags(n[3]), Unit: funnel.WholeSeconds}
		w, _ := window.NewExactLimit(funnel.Seconds, n[4], n[5])
		if r.Packed = w.Packed(); r.Kind == Bucket {
			r.Packed = Packed{n[4]}
		}
		s := states[row[1]]
		if s == nil {
			s = &State{}
			states[row[1]] = s
		}
		got := mustDecide(t, &r, s, n[0], n[6])
		if want := (funnel.Result{Limited: n[7] == 1, Limit: n[8], Remaining: n[9], RetryAfter: n[10], ResetAfter: n[11]}); got != want {
			t.Fatalf("line %d: %v: got %+v", i+2, row, got)
		}
	}
}

func TestTerms(t *testing.T) {
	perMinute, err := funnel.NewLimit(funnel.Burst, 15, 30, 60)
	perPart, errPart := funnel.NewLimitIn(funnel.Milliseconds, funnel.Burst, 0, 3, 250)
	hundred, errWindow := window.NewLimit(funnel.WholeSeconds, 100, 3600)
	if err != nil || errPart != nil || errWindow != nil {
		t.Fatal(err, errPart, errWindow)
	}
	for _, tt := range []struct {
		rule Rule
		want Terms
	}{
		{Rule{Funnel: perMinute}, Terms{Numbers: Numbers{16, 30, 60}}},
		{Rule{Unit: funnel.Milliseconds, Funnel: perPart}, Terms{Unit: funnel.Milliseconds, Numbers: Numbers{1, 3, 250}}},
		{Rule{Kind: FixedWindow, Unit: funnel.WholeSeconds, Packed: hundred.Packed()}, Terms{Kind: FixedWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{100, 3600}}},
		{Rule{Kind: SlidingWindow, Unit: funnel.WholeSeconds, Packed: hundred.Packed()}, Terms{Kind: SlidingWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{100, 3600}}},
		{Rule{Kind: Bucket, Packed: Packed{5}}, Terms{Kind: Bucket, Numbers: Numbers{5}}},
		{Rule{Kind: Named}, Terms{Kind: Named}},
	} {
		if got := tt.rule.Terms(); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
	for _, tt := range []struct {
		o    Operation
		want Terms
	}{
		{Operation{Verb: Reserve, Funnel: perMinute}, Terms{Numbers: Numbers{16, 30, 60}}},
		{Operation{Verb: Acquire, Max: 7}, Terms{Kind: Concurrency, Numbers: Numbers{7}}},
		{Operation{Verb: Look}, Terms{}},
	} {
		if got := tt.o.Terms(); got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

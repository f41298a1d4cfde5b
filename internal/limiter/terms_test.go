package limiter

import (
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/window"
)

func TestTerms(t *testing.T) {
	perMinute, err := funnel.NewLimit(funnel.Burst, 15, 30, 60)
	perPart, errPart := funnel.NewLimitIn(funnel.Milliseconds, funnel.Burst, 0, 3, 250)
	hundred, errWindow := window.NewLimit(funnel.WholeSeconds, 100, 3600)
	five, errBucket := bucket.NewLimit(5)
	if err != nil || errPart != nil || errWindow != nil || errBucket != nil {
		t.Fatal(err, errPart, errWindow, errBucket)
	}
	for _, tt := range []struct {
		rule Rule
		want Terms
	}{
		{Rule{Funnel: perMinute}, Terms{Numbers: Numbers{16, 30, 60}}},
		{Rule{Unit: funnel.Milliseconds, Funnel: perPart}, Terms{Unit: funnel.Milliseconds, Numbers: Numbers{1, 3, 250}}},
		{Rule{Kind: FixedWindow, Unit: funnel.WholeSeconds, Packed: hundred.Packed()}, Terms{Kind: FixedWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{100, 3600}}},
		{Rule{Kind: SlidingWindow, Unit: funnel.WholeSeconds, Packed: hundred.Packed()}, Terms{Kind: SlidingWindow, Unit: funnel.WholeSeconds, Numbers: Numbers{100, 3600}}},
		{Rule{Kind: Bucket, Packed: five.Packed()}, Terms{Kind: Bucket, Numbers: Numbers{5}}},
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

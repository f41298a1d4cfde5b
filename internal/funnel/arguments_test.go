package funnel

import (
	"math/rand/v2"
	"testing"
)

// TestArguments: a limit knows the arguments that it was made of, and they make the same one again.
func TestArguments(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	for range 20_000 {
		unit := []Unit{Seconds, Milliseconds}[r.IntN(2)]
		maxBurst, count, period := r.Int64N(1<<r.IntN(20)), 1+r.Int64N(1<<r.IntN(40)), 1+r.Int64N(1<<r.IntN(30))
		l, err := NewLimitIn(unit, Burst, maxBurst, count, period)
		if err != nil {
			continue
		}
		gotCount, gotPeriod := l.Arguments(unit)
		if uint64(count) <= unit.Ns() && (gotCount != count || gotPeriod != period) {
			t.Fatalf("of %d every %d: %d every %d", count, period, gotCount, gotPeriod)
		}
		if again, err := NewLimitIn(unit, Burst, maxBurst, gotCount, gotPeriod); err != nil || again != l {
			t.Fatalf("of %d every %d: %d every %d make %+v, not %+v: %v", count, period, gotCount, gotPeriod, again, l, err)
		}
	}
	if count, period := (Limit{}).Arguments(Seconds); count != 1 || period != 0 {
		t.Errorf("no limit is %d every %d", count, period)
	}
	if count, period := mustLimit(t, Burst, 9, 10, 1).Share(0.5).Arguments(Milliseconds); count != 1 || period != 200 {
		t.Errorf("half of 10 a second is %d every %d ms", count, period)
	}
}

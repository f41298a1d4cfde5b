package funnel

import (
	"testing"

	"cellserver/internal/funnel/vectors"
)

// TestVectors compares results with those of redis-cell's arithmetic on a virtual clock.
func TestVectors(t *testing.T) {
	for _, file := range []string{vectors.WholeMicroseconds, vectors.AnyNanosecond} {
		t.Run(file, func(t *testing.T) {
			rows, err := vectors.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			tats := map[string]int64{}
			for i, row := range rows {
				limit := mustLimit(t, Burst, row.MaxBurst, row.Count, row.PeriodSec)
				tat, got := limit.Throttle(tats[row.Key], row.AtNs, row.Quantity)
				tats[row.Key] = tat
				want := Result{Limited: row.Limited, Limit: row.Limit, Remaining: row.Remaining, RetryAfter: row.RetryAfter, ResetAfter: row.ResetAfter}
				if got != want {
					t.Fatalf("line %d: %+v: got %+v", i+2, row, got)
				}
			}
		})
	}
}

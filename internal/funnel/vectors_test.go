package funnel

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
)

// TestVectors compares results with those of redis-cell's arithmetic on a virtual clock.
func TestVectors(t *testing.T) {
	for _, file := range []string{"testdata/throttle_whole_us.csv", "testdata/throttle_any_ns.csv"} {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rows, err := csv.NewReader(f).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			tats := map[string]int64{}
			for i, row := range rows[1:] {
				number := func(column int) int64 {
					n, err := strconv.ParseInt(row[column], 10, 64)
					if err != nil {
						t.Fatalf("row %d: %v", i+2, err)
					}
					return n
				}
				limit := mustLimit(t, Burst, number(2), number(3), number(4))
				tat, got := limit.Throttle(tats[row[1]], number(0), number(5))
				tats[row[1]] = tat
				want := Result{number(6) == 1, number(7), number(8), number(9), number(10)}
				if got != want {
					t.Fatalf("row %d: %v: got %+v, want %+v", i+2, row[:6], got, want)
				}
			}
		})
	}
}

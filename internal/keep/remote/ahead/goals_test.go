package ahead

import (
	"fmt"
	"testing"

	"cellserver/internal/test/racetest"
)

func always() bool { return true }

// TestHotAllowedKey: leases spare at least 49 of 50 script calls where a key is hot and within its limit.
func TestHotAllowedKey(t *testing.T) {
	racetest.SkipAlone(t)
	for _, c := range []struct {
		cells            int
		capacity, perSec int64
		demand           float64 // of each
	}{
		{1, 100_000, 100_000, 20_000},
		{1, 1_000_000, 1_000_000, 20_000},
		{1, 10_000, 10_000, 5_000},
		{4, 20_000, 20_000, 4_000},
		{4, 50_000, 10_000, 2_000},
		{4, 10_000, 10_000, 2_400},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			f := newFleet(t, 1, c.cells, c.capacity, c.perSec, Config{Enabled: true})
			for _, k := range f.cells {
				f.demand(k, c.demand, always)
			}
			f.run(10 * sec)
			f.check(0)
			t.Logf("%d decisions, %d admitted, %d script calls: one in %d; %+v",
				f.decisions, f.units(), f.scripts, f.decisions/f.scripts, f.stats())
			if f.scripts*50 > f.decisions {
				t.Errorf("%d script calls for %d decisions", f.scripts, f.decisions)
			}
			if f.units() < int64(f.decisions)*999/1000 {
				t.Errorf("%d of %d admitted", f.units(), f.decisions)
			}
		})
	}
}

// TestHotLimitedKey: four processes together admit what one funnel would.
func TestHotLimitedKey(t *testing.T) {
	racetest.SkipAlone(t)
	capacities, loads := []int64{100, 5_000, 50_000}, []float64{0.95, 1.05, 1.2, 2, 5}
	if testing.Short() {
		capacities, loads = capacities[1:2], loads[2:4]
	}
	for _, capacity := range capacities {
		for _, load := range loads {
			for _, uneven := range []bool{false, true} {
				t.Run(fmt.Sprint(capacity, load, uneven), func(t *testing.T) {
					const perSec, seconds = 5_000, 8
					f := newFleet(t, 2, 4, capacity, perSec, Config{Enabled: true})
					shares := []float64{0.25, 0.25, 0.25, 0.25}
					if uneven {
						shares = []float64{0.6, 0.3, 0.08, 0.02}
					}
					for i, k := range f.cells {
						f.demand(k, load*perSec*shares[i], always)
					}
					f.run(seconds * sec)
					f.check(0)
					plain := f.plainly(load*perSec, seconds*sec)
					part := float64(f.units()) / float64(plain)
					t.Logf("%.4f of %d; %d script calls for %d decisions; %+v", part, plain, f.scripts, f.decisions, f.stats())
					if part < 0.98 {
						t.Errorf("%.4f of what one funnel admits", part)
					}
				})
			}
		}
	}
}

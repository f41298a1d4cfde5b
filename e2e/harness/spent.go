package harness

import (
	"maps"
	"os"
	"testing"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// SpentIn returns what was spent by limit and day, by a copy of a data directory, whose server may run.
func SpentIn(t *testing.T, dir string) []store.Spent {
	t.Helper()
	own := t.TempDir()
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	d, err := disk.OpenOS(own)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // nothing was written
	s := shard.New()
	if _, err := persist.ReadDir(t.Context(), d, s, time.Now().UnixNano()); err != nil {
		t.Fatal(err)
	}
	return s.Spent("").Sorted()
}

// SpentByLimit returns the sums of all days, but those of 0, which a server may have forgotten.
func SpentByLimit(all []store.Spent) map[string]int64 {
	sums := map[string]int64{}
	for _, of := range all {
		sums[of.Limit] += of.Units
	}
	maps.DeleteFunc(sums, func(_ string, units int64) bool { return units == 0 })
	return sums
}

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
	"cellserver/internal/test/patience"
)

// SpentIn returns what was spent by limit and day, by a copy of a data directory, whose server may run: it
// may remove a file while that is copied, which is done again.
func SpentIn(t *testing.T, dir string) (spent []store.Spent) {
	t.Helper()
	var err error
	if !patience.Until(func() bool { spent, err = spentIn(t, dir); return err == nil }) {
		t.Fatal(err)
	}
	return spent
}

func spentIn(t *testing.T, dir string) ([]store.Spent, error) {
	own := t.TempDir()
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		return nil, err
	}
	d, err := disk.OpenOS(own)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // nothing was written
	s := shard.New()
	if _, err := persist.ReadDir(t.Context(), d, s, time.Now().UnixNano()); err != nil {
		return nil, err
	}
	return s.Spent("").Sorted(), nil
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

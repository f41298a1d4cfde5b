package transfer

import (
	"testing"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// TestSpentIsNoKey: what was spent, which a directory has beside its keys, is not in an export.
func TestSpentIsNoKey(t *testing.T) {
	path, nowNs := t.TempDir(), time.Now().UnixNano()
	dir, err := disk.OpenOS(path)
	if err != nil {
		t.Fatal(err)
	}
	key := entry(0, "org:a", nowNs+1e15)
	err = persist.CreateDir(dir, nowNs, func(visit func(c store.Change)) error {
		visit(store.Change{Spent: &store.Spent{SpentAt: store.SpentAt{Limit: "org", Day: 20_000}, Units: 7}})
		visit(store.Change{Key: key.Key, State: key.State})
		return nil
	})
	if err != nil || dir.Close() != nil {
		t.Fatal(err)
	}
	keys, err := ReadDir(t.Context(), path, nowNs)
	if err != nil || keys.Count() != 1 {
		t.Fatalf("%d keys, %v", keys.Count(), err)
	}
	err = keys.Each(t.Context(), func(e Entry) error {
		if string(e.Key.Name) != "org:a" {
			t.Errorf("a key %q", e.Key.Name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

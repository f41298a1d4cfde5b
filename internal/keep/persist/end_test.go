package persist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestASyncAskedForInTheEnd: changes during the last sync are not confirmed by it.
func TestASyncAskedForInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		var ending, confirmed atomic.Bool
		dir.Before = func(op disktest.Op, _ string) error {
			if op == disktest.Sync && ending.CompareAndSwap(true, false) {
				l.charge("late")
				l.Sync(func() { confirmed.Store(true) })
			}
			return nil
		}
		l.charge("in time")
		ending.Store(true)
		endAll(t, l)
		s, _, err := loadStates(dir.Crash(rand.New(rand.NewPCG(1, 1))))
		if err != nil || s["in time"] == 0 || confirmed.Load() && s["late"] == 0 {
			t.Errorf("%v is left, %v; confirmed: %t", s, err, confirmed.Load())
		}
	})
}

// TestManyAreGoneInTheEnd: an orderly end keeps deletions that were not all recorded.
func TestManyAreGoneInTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for range 6 { // the end may precede or follow the deletions
		synctest.Test(t, func(t *testing.T) {
			dir := disktest.New()
			dir.Before = slowLogs
			l := beginLife(dir, nil)
			for i := range 120_000 {
				l.charge(fmt.Sprint("key:", i))
			}
			l.syncNow()
			l.charge("another")
			time.Sleep(2 * time.Second) // the sync is under way
			l.store.Flush(context.Background(), 0)
			endAll(t, l)
			s, _, err := loadStates(dir)
			if err != nil || len(s) != 0 {
				t.Errorf("%d keys are left, %v", len(s), err)
			}
		})
	}
}

// TestSnapshotsFailForADay: with space for logs only, the manifest stays readable.
func TestSnapshotsFailForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		dir.Before = func(op disktest.Op, name string) error {
			if op == disktest.Write && strings.HasPrefix(name, "snapshot-") {
				return errDisk
			}
			return nil
		}
		l := beginLife(dir, func(c *Config) { c.LeastLogBytes = 1 << 10 })
		for range 24 * 60 {
			l.charge("a")
			time.Sleep(time.Minute)
		}
		endAll(t, l)
		m, err := readManifest(dir)
		if err != nil || len(m.logs) > 2*maxLogs {
			t.Errorf("the manifest names %d logs, %v", len(m.logs), err)
		}
	})
}

// TestRepairOfAFullDisk: remains of failed attempts are removed.
func TestRepairOfAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		l.charge("a")
		endAll(t, l)
		dir.SetContents(manifestName, nil)
		var healed atomic.Bool
		dir.Before = func(op disktest.Op, name string) error {
			if op == disktest.Sync && strings.HasPrefix(name, "snapshot-") && !healed.Load() {
				return errors.New("no space left on device")
			}
			return nil
		}
		l = beginLife(dir, func(c *Config) { c.Repair = true })
		time.Sleep(time.Minute)
		healed.Store(true)
		time.Sleep(time.Minute)
		endAll(t, l)
		if names, _ := dir.List(); len(names) > 6 {
			t.Errorf("there are %v", names)
		}
	})
}

// TestLoadingIntoLessMemory: loading ignores a bound that refuses keys.
func TestLoadingIntoLessMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		for i := range 1000 {
			l.charge(fmt.Sprint("key:", i))
		}
		endAll(t, l)
		again := beginLife(dir, func(c *Config) { c.Store.(store.Bounded).SetMaxBytes(1<<14, store.NoEviction) })
		if n := again.Status().LoadedKeys; n != 1000 {
			t.Errorf("%d keys are loaded", n)
		}
		endAll(t, again)
	})
}

// TestRepairOfARecord: a valid frame with unknown records is skipped, too.
func TestRepairOfARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		w, err := createFile(dir, logName(1), kindLog, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := limiter.State{ExpiresNs: nowNs() + int64(time.Hour)}
		err = errors.Join(
			w.write(1, recordOf("a", in)), w.write(2, []byte{0xff}), w.write(3, recordOf("b", in)),
			(&manifest{logs: []fileEntry{{1, 1, -1}}}).write(dir))
		if err != nil {
			t.Fatal(err)
		}
		l := beginLife(dir, func(c *Config) { c.Repair = true })
		if err := l.alive(); err != nil {
			t.Fatal(err)
		}
		if n := l.Status().LoadedKeys; n != 2 {
			t.Errorf("%d keys are loaded", n)
		}
		endAll(t, l)
	})
}

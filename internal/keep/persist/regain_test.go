package persist

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
)

// TestTheDirectoryIsGone: nothing is confirmed, the fault is reported within a second, also without changes,
// and a new directory gets everything.
func TestTheDirectoryIsGone(t *testing.T) {
	for _, interval := range []time.Duration{0, time.Second, time.Hour, store.NoSync} {
		t.Run(fmt.Sprint(interval), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := disktest.New()
				rewritten := 0
				l := beginLife(dir, func(c *Config) {
					c.Interval, c.Rewrite = interval, func() error { rewritten++; return dir.Check() }
				})
				l.charge("before")
				l.syncNow()
				dir.Vanish()
				time.Sleep(lookInterval + time.Millisecond)
				if st := l.Status(); !errors.Is(st.Fault, disk.ErrGone) || st.Faults != 1 ||
					(l.Gate().Refusal() != nil) != (interval == 0) {
					t.Fatalf("the status is %+v", st)
				}
				l.charge("while")
				confirmed := false
				l.Sync(func() { confirmed = true })
				time.Sleep(time.Minute)
				if names, _ := dir.List(); len(names) > 0 || confirmed || rewritten > 0 {
					t.Errorf("there are %v, confirmed %t, rewritten %d times", names, confirmed, rewritten)
				}
				dir.Return(nil)
				l.syncNow()
				if st := l.Status(); st.Fault != nil || l.Gate().Refusal() != nil || !confirmed || rewritten != 1 {
					t.Errorf("then the status is %+v, confirmed %t, rewritten %d times", st, confirmed,
						rewritten)
				}
				l.charge("after")
				l.syncNow()
				again := afterCrash(dir)
				for _, name := range []string{"before", "while", "after"} {
					if again.tat(name) != l.tat(name) ||
						(l.tat(name) == 0) != (name == "while" && interval == 0) {
						t.Errorf("%s: %d, and is %d", name, l.tat(name), again.tat(name))
					}
				}
				endAll(t, l, again)
			})
		})
	}
}

// TestTheEndWithoutADirectory: a server without its directory does not end as if all were kept, even
// unnoticed.
func TestTheEndWithoutADirectory(t *testing.T) {
	for _, waits := range []time.Duration{0, time.Minute} {
		for _, returns := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				dir := disktest.New()
				l := beginLife(dir, nil)
				l.charge("k")
				l.syncNow()
				dir.Vanish()
				time.Sleep(waits)
				if returns {
					dir.Return(nil)
				}
				err := l.end()
				if returns {
					again := afterCrash(dir)
					if err != nil || again.tat("k") != l.tat("k") {
						t.Errorf("after %v: %v, %d, want %d", waits, err, again.tat("k"), l.tat("k"))
					}
					err = again.end()
				} else if errors.Is(err, disk.ErrGone) {
					err = nil
				} else {
					t.Errorf("after %v it ends with %v", waits, err)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestAnotherDirectoryInItsPlace: another server's files are untouched, until they are removed.
func TestAnotherDirectoryInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, others := disktest.New(), disktest.New()
		other := beginLife(others, nil)
		other.charge("others")
		endAll(t, other)
		l := beginLife(dir, func(c *Config) { c.Interval = 0 })
		l.charge("own")
		l.syncNow()
		dir.Vanish()
		before := map[string]string{}
		names, _ := others.List()
		for _, name := range names {
			before[name] = string(others.Contents(name))
		}
		dir.Return(others)
		time.Sleep(time.Minute)
		if st := l.Status(); !errors.Is(st.Fault, errForeign) || l.Gate().Refusal() == nil {
			t.Errorf("the status is %+v", st)
		}
		if now, _ := dir.List(); !slices.Equal(now, names) {
			t.Errorf("there are %v instead of %v", now, names)
		}
		for name, text := range before {
			if string(dir.Contents(name)) != text {
				t.Errorf("%s is changed", name)
			}
		}
		if err := l.end(); !errors.Is(err, errForeign) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// TestAFileIsGone: any removed file is noticed within a second and replaced by a new generation.
func TestAFileIsGone(t *testing.T) {
	for _, kind := range []string{"log-", "snapshot-", manifestName} {
		synctest.Test(t, func(t *testing.T) {
			dir := disktest.New()
			l := beginLife(dir, nil)
			l.charge("saved")
			if err := l.save(); err != nil {
				t.Fatal(err)
			}
			l.charge("logged")
			l.syncNow()
			names, _ := dir.List()
			i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, kind) })
			if i < 0 {
				t.Fatalf("there are only %v", names)
			}
			dir.Delete(names[i])
			time.Sleep(2 * time.Second)
			if st := l.Status(); st.Fault != nil || st.Faults != 1 || st.Saves != 2 {
				t.Errorf("%s: the status is %+v", names[i], st)
			}
			again := afterCrash(dir)
			if again.tat("saved") != l.tat("saved") || again.tat("logged") != l.tat("logged") ||
				l.tat("logged") == 0 {
				t.Errorf("%s: something is lost", names[i])
			}
			endAll(t, l, again)
		})
	}
}

// TestKilledWhileItReturns: a kill or crash during the rewriting of a directory leaves one that a server
// starts in, with all that was confirmed.
func TestKilledWhileItReturns(t *testing.T) {
	for _, kind := range []string{"the directory", manifestName} {
		var mu sync.Mutex
		var remain []remains
		counted, had, watched := 0, histories{}, false
		synctest.Test(t, func(t *testing.T) {
			dir, rng := disktest.New(), rand.New(rand.NewPCG(3, 4))
			dir.Before = func(op disktest.Op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if watched {
					counted++
					what := []string{fmt.Sprint(op, " ", name)}
					remain = append(remain, remains{dir.Crash(rng), had.clone(), what},
						remains{dir.Kill(), had.clone(), what})
				}
				return nil
			}
			l := beginLife(dir, func(c *Config) { c.Interval = store.NoSync })
			l.charge("a", "b")
			l.syncNow()
			if kind == manifestName {
				mu.Lock()
				had.note("a", l.tat("a"))
				had.confirm()
				watched = true
				mu.Unlock()
				dir.Delete(manifestName)
			} else {
				dir.Vanish()
				time.Sleep(time.Minute)
				mu.Lock()
				had.note("a", l.tat("a")) // or nothing, till it is confirmed
				watched = true
				mu.Unlock()
				dir.Return(nil)
			}
			time.Sleep(time.Minute)
			l.syncNow()
			mu.Lock()
			had.confirm()
			mu.Unlock()
			l.charge("c")
			l.syncNow()
			mu.Lock()
			watched = false
			mu.Unlock()
			endAll(t, l)
		})
		// Until it is written again, a log without a manifest may be one that was never named.
		back := kind != manifestName
		for _, r := range remain {
			if !back {
				back = strings.HasPrefix(r.trace[0], string(disktest.SyncDir))
				continue
			}
			if err := r.check(); err != nil {
				t.Errorf("%s: %v, at %q", kind, err, r.trace)
			}
		}
		if counted < 10 {
			t.Errorf("%s: there were %d operations", kind, counted)
		}
	}
}

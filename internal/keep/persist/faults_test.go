package persist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// faults makes operations fail, and records what a crash at each would leave.
type faults struct {
	dir   *disktest.Dir
	rng   *rand.Rand
	first int // of the operations that fail
	n     int // of those
	from  int // the first operation at which there may be a crash

	mu     sync.Mutex
	ops    int
	trace  []string
	had    histories
	remain []remains
}

// remains is what is left behind.
type remains struct {
	dir   *disktest.Dir
	had   histories
	trace []string
}

// crashOps is the number of operations with crashes after the failing ones.
const crashOps = 20

func (f *faults) before(op disktest.Op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops++
	if f.ops >= f.from && f.ops < f.from+f.n+crashOps {
		for range 3 {
			f.remain = append(f.remain, remains{f.dir.Crash(f.rng), f.had.clone(), slices.Clone(f.trace)})
		}
	}
	what := fmt.Sprint(op, " ", name)
	if f.ops >= f.first && f.ops < f.first+f.n {
		f.trace = append(f.trace, what+" fails")
		return errDisk
	}
	f.trace = append(f.trace, what)
	return nil
}

func (f *faults) take(l *life, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tatNs, err := l.take(name); err == nil {
		f.had.note(name, tatNs)
	}
}

func (f *faults) del(l *life, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.del(name) {
		f.had.note(name, 0)
	}
}

// sync requests a sync and records its confirmation.
func (f *faults) sync(l *life) {
	f.mu.Lock()
	asked := f.had.clone()
	f.mu.Unlock()
	l.Sync(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, was := range asked {
			if i := slices.Index(f.had[name], was[len(was)-1]); i > 0 {
				f.had[name] = f.had[name][i:]
			}
		}
	})
	synctest.Wait()
}

// serve is a short life in which everything happens once.
func (f *faults) serve(t *testing.T, change func(*Config)) error {
	f.dir.Before = f.before
	l := beginLife(f.dir, change)
	if err := l.alive(); err != nil {
		return err
	}
	for name := range f.had {
		if tatNs := l.tat(name); !f.had.has(name, tatNs) {
			t.Errorf("%s is %d", name, tatNs)
		}
	}
	for i := range 3 {
		f.take(l, fmt.Sprint("a", i))
		f.take(l, "b")
		f.sync(l)
		if i == 1 {
			_ = l.Save(func(error) {})
			synctest.Wait()
			f.del(l, "a0")
			f.take(l, "c")
			time.Sleep(time.Second)
		}
	}
	time.Sleep(2 * mostRetry)
	f.take(l, "d")
	f.sync(l)
	f.take(l, "e")
	return l.end()
}

// check loads what is left.
func (r remains) check() error {
	s, _, err := loadStates(r.dir)
	if err != nil {
		return fmt.Errorf("it is refused: %w", err)
	}
	for name := range r.had {
		if tatNs := s[name]; !r.had.has(name, tatNs) {
			return fmt.Errorf("%s is %d, and was %v", name, tatNs, r.had[name])
		}
	}
	return nil
}

// TestEveryFault: whichever operations fail and whenever a crash follows, confirmed changes survive.
func TestEveryFault(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	step := 1
	if racetest.Enabled {
		step = 8
	}
	seen := map[string]bool{} // errors, reported once
	for _, interval := range []time.Duration{0, store.NoSync} {
		for _, n := range []int{1, 3} {
			for first := 1; first < 45; first += step {
				f := &faults{dir: disktest.New(), rng: rand.New(rand.NewPCG(uint64(first), uint64(n))), first: first, n: n, from: first, had: histories{}}
				var err error
				synctest.Test(t, func(t *testing.T) { err = f.serve(t, func(c *Config) { c.Interval = interval }) })
				if err != nil && f.ops >= first+n {
					f.remain = append(f.remain, remains{nil, nil, f.trace})
				}
				for _, r := range f.remain {
					if r.dir != nil {
						err = r.check()
					}
					if err != nil && !seen[err.Error()] {
						seen[err.Error()] = true
						t.Errorf("interval %v, %d operations from %d on fail: %v\nafter %q", interval, n, first, err, r.trace)
					}
				}
			}
		}
	}
}

// TestKilledThenCrashed: unsynced data of a killed process is read by the next, and may be lost in a later
// crash.
func TestKilledThenCrashed(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, seed))
			dir := disktest.New()
			l := beginLife(dir, func(c *Config) { c.Interval = store.NoSync })
			for i := range 5 {
				l.charge(fmt.Sprint("key", i))
				time.Sleep(2 * time.Second)
			}
			killed := dir.Kill()
			again := beginLife(killed, func(c *Config) { c.Interval = 0 })
			if n := again.Status().LoadedKeys; n != 5 {
				t.Errorf("%d keys are loaded", n)
			}
			tatNs, _ := again.take("new")
			again.syncNow()
			crashed := killed.Crash(rng)
			endAll(t, l, again)
			s, _, err := loadStates(crashed)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s["new"] != tatNs || len(s) != 6 {
				t.Errorf("seed %d: %d keys, %v", seed, len(s), s)
			}
		})
	}
}

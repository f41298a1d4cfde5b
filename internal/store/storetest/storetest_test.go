package storetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// memory is a correct store, the base of broken ones.
type memory struct{ *shard.Store }

func newMemory() memory { return memory{shard.New()} }

func TestMemory(t *testing.T) {
	Test(t, func(*testing.T) store.Store { return newMemory() })
}

func TestBare(t *testing.T) {
	Test(t, func(*testing.T) store.Store { return Bare(newMemory()) })
}

func TestLater(t *testing.T) {
	Test(t, func(*testing.T) store.Store { return Later(newMemory()) })
}

// TestLaterThanLater: the inner store may answer later, too.
func TestLaterThanLater(t *testing.T) {
	Test(t, func(*testing.T) store.Store { return Later(Later(newMemory())) })
}

// TestLaterWithMore is the example in Later's documentation.
func TestLaterWithMore(t *testing.T) {
	Test(t, func(*testing.T) store.Store {
		inner := newMemory()
		return struct {
			*LaterStore
			store.Walker
			store.Watcher
			store.Transactor
		}{Later(inner), inner, inner, inner}
	})
}

func TestRemote(t *testing.T) {
	Test(t, func(*testing.T) store.Store { return NewRemote(newMemory()) })
}

// recorder is a reporter that keeps its reports.
type recorder struct {
	mu       sync.Mutex // guards all below
	failures []string
	skipped  string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.skipped = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

// record runs the check of a name as Test would.
func record(t *testing.T, name string, s store.Store) *recorder {
	t.Helper()
	all := checks()
	i := slices.IndexFunc(all, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no check %q", name)
	}
	r := new(recorder)
	var wg sync.WaitGroup
	wg.Go(func() { all[i].run(r, s) })
	wg.Wait()
	return r
}

// TestSkipsSayWhatIsMissing: a store without capabilities passes, and learns which are missing.
func TestSkipsSayWhatIsMissing(t *testing.T) {
	missing := map[string]int{}
	for _, c := range checks() {
		r := record(t, c.name, Bare(newMemory()))
		if len(r.failures) > 0 {
			t.Errorf("%s: %s", c.name, r.failures[0])
		}
		if r.skipped != "" {
			missing[r.skipped]++
		}
	}
	for _, capability := range []string{"store.Walker", "store.Watcher", "store.Transactor", "store.Pending", "store.Remote"} {
		n := 0
		for skipped, times := range missing {
			if strings.Contains(skipped, capability) {
				n += times
			}
		}
		if n < 3 {
			t.Errorf("%d checks were skipped for want of a %s: %v", n, capability, missing)
		}
	}
}

func TestNamesOfChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range checks() {
		if seen[c.name] {
			t.Errorf("%q twice", c.name)
		}
		seen[c.name] = true
	}
}

// TestBrokenStoresFail: the named check finds each store's fault.
func TestBrokenStoresFail(t *testing.T) {
	racetest.SkipAlone(t)
	for _, broken := range slices.Concat(brokenKeys(), brokenPending(), brokenWalkers(), brokenBounds(), brokenWatchers(), brokenTransactors(), brokenKinds(), brokenSteps()) {
		t.Run(fmt.Sprintf("%T", broken.store), func(t *testing.T) {
			r := record(t, broken.check, broken.store)
			if len(r.failures) == 0 {
				t.Fatalf("it passed %q, skipped: %q", broken.check, r.skipped)
			}
			t.Log(r.failures[0])
		})
	}
}

// broken is a faulty store and the check that finds the fault.
type broken struct {
	store store.Store
	check string
}

// TestLaterHolds: held batches are undecided; released ones are answered in order.
func TestLaterHolds(t *testing.T) {
	inner := newMemory()
	l, k := Later(inner), key(0, "k")
	l.Hold()
	l.Hold()
	var pending []store.Pending
	for range 3 {
		pending = append(pending, l.Throttle(t0, []store.Request{{Key: k, Rule: limiter.OfFunnel(limit(9, 1, 60)), Quantity: 1}}))
	}
	pending[1].Cancel()
	pending[1].Notify(func() { t.Error("woken, and canceled before") })
	for i, p := range pending {
		if _, ok := p.Answers(); ok || l.Waiting() != 3 {
			t.Errorf("held: batch %d has answers, or %d wait", i, l.Waiting())
		}
	}
	wantTAT(t, inner, t0, k, 0)
	l.Release()
	for i, p := range pending {
		if i == 1 {
			continue
		}
		if got := wait(t, p)[0].Result.Remaining; got != int64(9-i) {
			t.Errorf("batch %d: %d remain, want %d", i, got, 9-i)
		}
	}
	if n := l.Waiting(); n != 0 {
		t.Errorf("%d wait after Release", n)
	}
	l.Release()
	put(t, l, t0, k, 60)
	wantTAT(t, inner, t0, k, t0+240*sec)
}

package gate

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/store"
)

// freezer notes what it was told last.
type freezer struct {
	store.Tracker
	fromNs int64
	err    error
	calls  int
}

func (f *freezer) Freeze(fromNs int64, err error) { f.fromNs, f.err, f.calls = fromNs, err, f.calls+1 }

// TestReasons: the earliest holds, and of those at one time the first in their order; the store is told of
// each change, and of no other.
func TestReasons(t *testing.T) {
	var nowNs int64
	f := &freezer{}
	g := New(f, func() int64 { return nowNs })
	const replica, tooFew, disk Refusal = "READONLY x", "NOREPLICAS x", "MISCONF x"
	for i, tt := range []struct {
		do    func() bool
		isNew bool
		from  int64 // of what the store was told
		by    error
		calls int
	}{
		{func() bool { return g.Close(TooFew, 100, tooFew) }, true, 100, tooFew, 1},
		{func() bool { return g.Close(TooFew, 100, tooFew) }, false, 100, tooFew, 1},
		{func() bool { return g.Close(TooFew, 200, tooFew) }, true, 200, tooFew, 2},
		{func() bool { return g.Close(Disk, 0, disk) }, true, 0, disk, 3},
		{func() bool { return g.Close(TooFew, 0, tooFew) }, true, 0, tooFew, 4},
		{func() bool { return g.Close(Replica, 0, replica) }, true, 0, replica, 5},
		{func() bool { g.Open(TooFew); return false }, false, 0, replica, 5},
		{func() bool { g.Open(Replica); return false }, false, 0, disk, 6},
		{func() bool { return g.Close(Replica, 300, replica) }, true, 0, disk, 6},
		{func() bool { g.Open(Disk); return false }, false, 300, replica, 7},
		{func() bool { g.Open(Replica); return false }, false, store.Never, nil, 8},
	} {
		if isNew := tt.do(); isNew != tt.isNew || f.fromNs != tt.from || !errors.Is(f.err, tt.by) || f.calls != tt.calls {
			t.Errorf("step %d: new: %t; the store was told %+v", i, isNew, *f)
		}
		for _, nowNs = range []int64{0, tt.from - 1, tt.from} {
			refuses := tt.by != nil && nowNs >= tt.from
			if err := g.Refusal(); refuses != (err != nil) || refuses && (!errors.Is(err, tt.by) || !errors.Is(err, store.ErrFrozen)) {
				t.Errorf("step %d: at %d: %v", i, nowNs, err)
			}
		}
	}
	New(nil, func() int64 { return 0 }).Close(Disk, 0, disk) // without a store
}

func TestInterferes(t *testing.T) {
	g := New(nil, func() int64 { return 0 })
	check := func(loading, holds bool) {
		t.Helper()
		if g.Loading() != loading || g.Holds() != holds || g.Interferes() != (loading || holds) {
			t.Errorf("loading: %t, holds: %t, interferes: %t", g.Loading(), g.Holds(), g.Interferes())
		}
	}
	check(false, false)
	g.BeginLoading()
	g.BeginLoading()
	g.Hold()
	check(true, true)
	g.Hold()
	g.Release()
	check(true, false)
	g.Release()
	g.EndLoading()
	check(true, false)
	g.EndLoading()
	check(false, false)
}

// TestAwait: whoever waits goes on once, whenever the release comes.
func TestAwait(t *testing.T) {
	g := New(nil, func() int64 { return 0 })
	went := 0
	if g.Await(func() { went++ }); went != 1 {
		t.Error("without a hold it waits")
	}
	g.Hold()
	g.Await(func() { went++ })
	g.Await(func() {
		if went++; g.Holds() {
			t.Error("it goes on while there is a hold")
		}
	})
	if went != 1 {
		t.Error("it does not wait")
	}
	if g.Release(); went != 3 {
		t.Errorf("%d went on", went)
	}
	const rounds, waiters = 300, 4
	var count atomic.Int64
	var all sync.WaitGroup
	for range rounds {
		for range waiters {
			all.Add(1)
			go g.Await(func() {
				count.Add(1)
				all.Done()
			})
		}
		g.Hold()
		go g.Release()
	}
	g.Release()
	all.Wait()
	if g.Release(); count.Load() != rounds*waiters {
		t.Errorf("%d went on, of %d", count.Load(), rounds*waiters)
	}
}

package storetest

import (
	"runtime"
	"sync"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
)

// checkKindsConcurrent counts in shared windows, holds places, applies steps unknown to the store, and counts
// twice in released transactions: nothing is lost or repeated.
func checkKindsConcurrent(t reporter, s store.Store) {
	const callers, each, most = 6, 100, 1 << 12
	hot, stepped, twice, held := key(0, "hot"), key(0, "stepped"), key(0, "counted twice in a step"), key(1, "held")
	rule := limiter.Rule{Kind: limiter.SlidingWindow, Packed: mustWindow(window.NewExactLimit(funnel.Seconds, most, 60)).Packed()}
	one, look := ofRequest(rule, 1), ofRequest(rule, 0)
	transactor, _ := s.(store.Transactor)
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			t := concurrent{t}
			for n := range each {
				one.on(t, s, t0+int64(n), hot)
				if err := s.Apply(t0, stepped, &both{rule: rule, quantity: 1}); err != nil {
					t.Errorf("Apply: %v", err)
				}
				hold(uint64(g)).on(t, s, t0, held)
				if a := hold(uint64(100+g*each+n)).on(t, s, t0, held); a.err != nil || a.result.Limited {
					t.Errorf("a holder: %+v", a)
				}
				for transactor != nil && !countTwice(t, transactor, one, hot, twice) {
					continue
				}
				release := limiter.Operation{Verb: limiter.Release, ID: uint64(100 + g*each + n)}
				if a := ofOperation(release).on(t, s, t0, held); a.count != 1 {
					t.Errorf("a holder has lost its place: %+v", a)
				}
			}
		})
	}
	wg.Wait()
	counted, both := int64(callers*each), int64(0)
	if transactor != nil {
		counted, both = 2*counted, counted
	}
	for _, c := range []struct {
		key  store.Key
		want int64
	}{{hot, counted}, {stepped, 2 * callers * each}, {twice, both}} {
		if a := look.on(t, s, t0+each, c.key); a.result.Remaining != most-c.want {
			t.Fatalf("%q: %d are counted, want %d", c.key.Name, most-a.result.Remaining, c.want)
		}
	}
	if a := ofOperation(limiter.Operation{Verb: limiter.Holders}).on(t, s, t0, held); a.count != callers {
		t.Fatalf("%d hold places, want %d", a.count, callers)
	}
}

// countTwice counts in both windows or in none.
func countTwice(t reporter, transactor store.Transactor, a act, first, second store.Key) bool {
	tx := transactor.Begin(t0, []store.Key{second, first})
	defer tx.Rollback()
	tx.Release()
	a.on(t, tx, t0, first)
	runtime.Gosched() // lets others come between
	a.on(t, tx, t0, second)
	return tx.Commit()
}

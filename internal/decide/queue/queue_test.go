package queue

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// in runs a test in a bubble.
func in(t *testing.T, f func(t *testing.T, r *harness)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newHarness()) })
}

// TestTurns: a fitting request is answered at once, the next in turn, and one that would wait too long is
// limited at once.
func TestTurns(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 0, 1, 1)
		for i := range 4 {
			w, result := r.enter(t, k, l, 1, 3*time.Second, i)
			if (w == nil) != (i == 0) || result.Limited {
				t.Errorf("%d waits: %t, %+v", i, w != nil, result)
			}
		}
		if w, result := r.enter(t, k, l, 1, 3*time.Second, 4); w != nil || !result.Limited || result.RetryAfter != 4 {
			t.Errorf("it waits %t, %+v", w != nil, result)
		}
		if w, result := r.enter(t, k, l, 2, 0, 5); w != nil || !result.Limited || result.RetryAfter != -1 {
			t.Errorf("above the capacity: waits %t, %+v", w != nil, result)
		}
		for i := 1; i < 4; i++ {
			time.Sleep(time.Second)
			synctest.Wait()
			r.checkWoken(t, i)
		}
		r.checkEmpty(t)
	})
}

// TestResults: allowed waiters see the funnel at their turn, others the time they would have waited.
func TestResults(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 1, 1, 1)
		var all []*Waiter
		for i := range 6 {
			if w, _ := r.enter(t, k, l, 1, time.Minute, i); w != nil {
				all = append(all, w)
			}
		}
		all[2].Leave(TimedOut)
		if got, want := all[2].Result(now()), (funnel.Result{Limited: true, Limit: 2, RetryAfter: 4, ResetAfter: 5}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := all[0].Result(now()), (funnel.Result{Limit: 2, RetryAfter: -1, ResetAfter: 4}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		r.End()
	})
}

// TestNoOvertaking: a larger funnel waits for smaller ones, or not at all.
func TestNoOvertaking(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, small, large := keyOf("k"), limitOf(t, 0, 1, 1), limitOf(t, 99, 1, 1)
		for i := range 4 {
			r.enter(t, k, small, 1, time.Minute, i)
		}
		if w, result := r.enter(t, k, large, 1, 2*time.Second, 4); w != nil || !result.Limited || result.RetryAfter != 3 || result.Remaining != 96 {
			t.Errorf("it waits %t, %+v", w != nil, result)
		}
		if w, _ := r.enter(t, k, large, 1, 3*time.Second, 5); w == nil {
			t.Error("it does not wait")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.checkWoken(t, 1, 2, 3, 5)
		r.checkEmpty(t)
	})
}

// TestRemovedKey: after an unreported removal all are answered.
func TestRemovedKey(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 0, 1, 60)
		for i := range 4 {
			r.enter(t, k, l, 1, time.Hour, i)
		}
		r.funnels.set(k, func(int64) int64 { return 0 })
		time.Sleep(lookEvery)
		synctest.Wait()
		r.checkWoken(t, 1, 2, 3)
		r.checkEmpty(t)
	})
}

// TestLeavingARemovedKey returns none of the later charges.
func TestLeavingARemovedKey(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 0, 1, 60)
		r.enter(t, k, l, 1, time.Hour, 0)
		w, _ := r.enter(t, k, l, 1, time.Hour, 1)
		after := now() + int64(time.Second)
		r.funnels.set(k, func(int64) int64 { return after })
		if w.Leave(Cancelled) || w.Outcome() != Allowed || r.funnels.emptyNs(k) != after {
			t.Errorf("its outcome is %d, and the funnel is empty at %d, want %d", w.Outcome(), r.funnels.emptyNs(k), after)
		}
		r.checkEmpty(t)
	})
}

// TestKeysAreIndependent, also those of two databases, except in LookAtAll.
func TestKeysAreIndependent(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		l := limitOf(t, 0, 1, 3600)
		keys := []store.Key{keyOf("a"), {DB: 1, Name: []byte("a")}, keyOf("b")}
		for i, k := range keys {
			r.enter(t, k, l, 1, 0, 0)
			r.enter(t, k, l, 1, 2*time.Hour, i)
		}
		none := func(int64) int64 { return 0 }
		r.funnels.set(keys[1], none)
		for _, k := range []store.Key{keys[0], keys[2], keyOf("c")} {
			r.Look(k)
		}
		r.checkWoken(t)
		r.Look(keys[1])
		r.checkWoken(t, 1)
		r.funnels.set(keys[0], none)
		r.funnels.set(keys[2], none)
		r.LookAtAll()
		if got := r.taken(); len(got) != 2 {
			t.Errorf("woken %v", got)
		}
		r.checkEmpty(t)
	})
}

// TestEnd returns the charges of waiters and ends waiting.
func TestEnd(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 0, 1, 60)
		r.enter(t, k, l, 1, 0, 0)
		wantNs := r.funnels.emptyNs(k)
		var all []*Waiter
		for i := range 10 {
			w, _ := r.enter(t, k, l, 1, time.Hour, 1+i)
			all = append(all, w)
		}
		all[3].Leave(Cancelled)
		r.End()
		r.checkWoken(t, 4, 1, 2, 3, 5, 6, 7, 8, 9, 10)
		if all[3].Outcome() != Cancelled || all[4].Outcome() != Ended || r.funnels.emptyNs(k) != wantNs {
			t.Errorf("outcomes %d and %d, the funnel is empty at %d, want %d", all[3].Outcome(), all[4].Outcome(), r.funnels.emptyNs(k), wantNs)
		}
		if w, result := r.enter(t, k, l, 1, time.Hour, 1); w != nil || !result.Limited {
			t.Errorf("it waits %t, %+v", w != nil, result)
		}
		r.checkEmpty(t)
	})
}

// TestFailingStore: arrivals get the error, waiters their turn.
func TestFailingStore(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k, l := keyOf("k"), limitOf(t, 0, 1, 60)
		r.enter(t, k, l, 1, 0, 0)
		r.enter(t, k, l, 1, time.Hour, 1)
		gone, _ := r.enter(t, k, l, 1, time.Hour, 2)
		r.enter(t, k, l, 1, time.Hour, 3)
		r.funnels.err = errors.New("failed")
		o := limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: 1, TTLNs: int64(time.Hour)}
		if w, err := r.Enter(now(), k, &o, nil); w != nil || !errors.Is(err, r.funnels.err) {
			t.Errorf("got %v", err)
		}
		gone.Leave(Cancelled)
		r.checkWoken(t, 2)
		time.Sleep(2*time.Minute - time.Nanosecond)
		synctest.Wait()
		r.checkWoken(t, 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.checkWoken(t, 3)
		r.checkEmpty(t)
	})
}

// TestLeaversAreDropped, also behind an endless waiter.
func TestLeaversAreDropped(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		k := keyOf("k")
		r.enter(t, k, limitOf(t, 0, 1, 1e9), 1, 0, 0)
		first, _ := r.enter(t, k, limitOf(t, 0, 1, 1e9), 1, 1<<62, 0)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range int64(1000) {
			if w, _ := r.enter(t, k, limitOf(t, 1+i, 1, 1e6), 1, 1<<62, 0); w != nil {
				r.funnels.set(k, func(tatNs int64) int64 { return tatNs - rng.Int64N(2) })
				r.Look(k)
				w.Leave(Cancelled)
			}
		}
		if l := first.line; len(l.waiters) > 2 || len(l.tolerances.values) > 2 || len(l.looks.values) > 2 {
			t.Errorf("it keeps %d waiters, %d tolerances and %d looks", len(l.waiters), len(l.tolerances.values), len(l.looks.values))
		}
		r.End()
	})
}

// TestLongLines: no operation visits all waiters.
func TestLongLines(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		const n = 20_000
		k, l := keyOf("k"), limitOf(t, 0, 1000, 1)
		all := make([]*Waiter, n)
		r.enter(t, k, l, 1, 0, 0)
		for i := range all {
			all[i], _ = r.enter(t, k, l, 1, time.Hour, i)
		}
		for i := 0; i < n; i += 2 {
			all[i].Leave(Cancelled)
		}
		r.taken()
		time.Sleep(n / 2 * time.Millisecond)
		synctest.Wait()
		woken := r.taken()
		for i, number := range woken {
			if number != 2*i+1 {
				t.Fatalf("%d was woken instead of %d", number, 2*i+1)
			}
		}
		if len(woken) != n/2 || r.funnels.emptyNs(k) != now()+int64(time.Millisecond) {
			t.Errorf("%d were woken; the funnel is empty in %s", len(woken), time.Duration(r.funnels.emptyNs(k)-now()))
		}
		r.checkEmpty(t)
	})
}

// TestManyAtOnce: each is answered once, and leavers return their charges.
func TestManyAtOnce(t *testing.T) {
	in(t, func(t *testing.T, r *harness) {
		keys, l := []store.Key{keyOf("a"), keyOf("b")}, limitOf(t, 0, 100, 1)
		var wg sync.WaitGroup
		var mu sync.Mutex
		allowed := [2]int64{}
		for i := range 64 {
			wg.Go(func() {
				for range 20 {
					w, result := r.enter(t, keys[i%2], l, 1, time.Hour, i)
					if w != nil && i%4 < 2 {
						time.Sleep(time.Duration(i) * time.Millisecond)
						r.Look(keys[i%2])
						w.Leave(Cancelled)
					}
					for w != nil && w.Outcome() == Waiting {
						time.Sleep(time.Second)
					}
					if w == nil && !result.Limited || w != nil && w.Outcome() == Allowed {
						mu.Lock()
						allowed[i%2]++
						mu.Unlock()
					}
				}
			})
		}
		beganNs := now()
		wg.Wait()
		for i, k := range keys {
			if maxAllowed := 1 + (now()-beganNs)/int64(l.IntervalNs()); allowed[i] > maxAllowed {
				t.Errorf("%d allowed, want at most %d", allowed[i], maxAllowed)
			}
			if leftNs := r.funnels.emptyNs(k) - now(); leftNs > int64(l.ToleranceNs()) {
				t.Errorf("nobody waits, and the funnel is empty in %s", time.Duration(leftNs))
			}
		}
		r.checkEmpty(t)
	})
}

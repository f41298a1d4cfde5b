package storetest

import (
	"runtime"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func pendingChecks() []check {
	return []check{
		{"answers that come later: one wake", checkOneWake},
		{"answers that come later: none to wait for", checkLateNotify},
		{"answers that come later: canceled", checkCancel},
	}
}

// later returns a batch's Pending, and skips the check if it is answered at once.
func later(t reporter, s store.Store, nowNs int64, batch []store.Request) store.Pending {
	t.Helper()
	p := s.Throttle(nowNs, batch)
	if p == nil {
		t.Skipf("the store does not return a store.Pending: it answers at once")
	}
	return p
}

// checkOneWake has many batches under way.
func checkOneWake(t reporter, s store.Store) {
	const batches, size = 200, 10
	var wakes [batches]atomic.Int32
	var pending [batches]store.Pending
	var woken sync.WaitGroup
	l := limit(batches*size/2-1, 1, 3600)
	for i := range pending {
		var batch []store.Request
		for n := range size {
			batch = append(batch, store.Request{Key: key(0, "hot"), Rule: limiter.OfFunnel(l), Quantity: int64(n % 2)})
		}
		pending[i] = later(t, s, t0, batch)
		woken.Add(1)
		pending[i].Notify(func() {
			if wakes[i].Add(1) == 1 {
				woken.Done()
			}
		})
	}
	woken.Wait()
	for i, p := range pending {
		answered, ok := p.Answers()
		again, still := p.Answers()
		if !ok || !still || len(answered) != size || len(again) != size {
			t.Fatalf("batch %d: %d and %d answers after the wake, %v, %v", i, len(answered), len(again), ok, still)
		}
		for n, q := range answered {
			if q.Err != nil || q.Result.Limited || q.Quantity != int64(n%2) {
				t.Fatalf("batch %d, request %d: %+v", i, n, q)
			}
		}
	}
	wantTAT(t, s, t0, key(0, "hot"), t0+batches*size/2*3600*sec)
	for range batches { // a second wake would come now
		throttle(t, s, t0, key(0, "another"), l, 0)
	}
	for i := range wakes {
		if n := wakes[i].Load(); n != 1 {
			t.Fatalf("batch %d was woken for %d times", i, n)
		}
	}
}

func checkLateNotify(t reporter, s store.Store) {
	for i, k := range numbered(0, "k", 20) {
		p := later(t, s, t0, []store.Request{{Key: k, Rule: limiter.OfFunnel(limit(9, 1, 60)), Quantity: int64(i % 9)}})
		for {
			if _, ok := p.Answers(); ok {
				break
			}
			runtime.Gosched()
		}
		answered := wait(t, p)
		if got := answered[0].Result.Remaining; got != 10-int64(i%9) {
			t.Fatalf("key %d: %d remain", i, got)
		}
		p.Cancel()
	}
}

// checkCancel cancels batches before and after their answers. Later ones are answered.
func checkCancel(t reporter, s store.Store) {
	var wakes [100]atomic.Int32
	for i := range wakes {
		p := later(t, s, t0, []store.Request{{Key: key(0, "k"), Rule: limiter.OfFunnel(limit(999, 1, 60)), Quantity: 1}})
		if i%3 > 0 {
			p.Notify(func() { wakes[i].Add(1) })
		}
		if i%3 > 1 {
			throttle(t, s, t0, key(0, "k"), limit(999, 1, 60), 0)
		}
		p.Cancel()
	}
	if r := throttle(t, s, t0, key(0, "k"), limit(999, 1, 60), 0); r.Limited || r.Remaining < 900 {
		t.Fatalf("after %d units: %+v", len(wakes), r)
	}
	for i := range wakes {
		if n := wakes[i].Load(); n > 1 {
			t.Fatalf("batch %d was woken for %d times", i, n)
		}
	}
}

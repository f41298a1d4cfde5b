package storetest

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// LaterStore answers each batch later, from another goroutine, for tests of waiting. Its other methods are
// immediate. It is safe for concurrent use. It has no optional capability; a test that needs one adds the
// inner store's:
//
//	struct {
//		*storetest.LaterStore
//		store.Transactor
//	}{storetest.Later(inner), inner}
type LaterStore struct {
	store.Store // decides

	mu      sync.Mutex // guards all below
	held    bool
	working bool
	queue   []*laterBatch // undecided ones
}

// Later returns a LaterStore whose batches are decided by inner in order.
func Later(inner store.Store) *LaterStore { return &LaterStore{Store: inner} }

// Throttle implements store.Keys. It copies the names.
func (l *LaterStore) Throttle(nowNs int64, batch []store.Request) store.Pending {
	b := &laterBatch{nowNs: nowNs, batch: slices.Clone(batch)}
	for i := range b.batch {
		b.batch[i].Key.Name = slices.Clone(b.batch[i].Key.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, b)
	l.workLocked()
	return b
}

func (l *LaterStore) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *LaterStore) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.workLocked()
}

// Waiting returns the number of undecided batches, canceled ones included.
func (l *LaterStore) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// workLocked keeps a goroutine running while there is work.
func (l *LaterStore) workLocked() {
	if !l.working && !l.held && len(l.queue) > 0 {
		l.working = true
		go l.work()
	}
}

func (l *LaterStore) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.held && len(l.queue) > 0 {
		b := l.queue[0]
		l.queue = slices.Delete(l.queue, 0, 1)
		l.mu.Unlock()
		b.decide(l.Store)
		l.mu.Lock()
	}
	l.working = false
}

type laterBatch struct {
	nowNs int64
	batch []store.Request // owned by the deciding goroutine until answered

	mu       sync.Mutex // guards all below
	answered bool
	canceled bool
	wake     func() // nil once called
}

func (b *laterBatch) decide(by store.Store) {
	if p := by.Throttle(b.nowNs, b.batch); p != nil {
		done := make(chan struct{})
		p.Notify(func() { close(done) })
		<-done
		b.batch, _ = p.Answers()
	}
	b.mu.Lock()
	b.answered = true
	b.mu.Unlock()
	b.wakeOnce()
}

// wakeOnce calls wake, without a lock.
func (b *laterBatch) wakeOnce() {
	b.mu.Lock()
	wake := b.wake
	if !b.answered || b.canceled {
		wake = nil
	} else {
		b.wake = nil
	}
	b.mu.Unlock()
	if wake != nil {
		wake()
	}
}

func (b *laterBatch) Notify(wake func()) {
	b.mu.Lock()
	b.wake = wake
	b.mu.Unlock()
	b.wakeOnce()
}

func (b *laterBatch) Answers() (answered []store.Request, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.answered {
		return nil, false
	}
	return b.batch, true
}

// Cancel implements store.Pending. The batch is still decided.
func (b *laterBatch) Cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.canceled = true
}

type bare struct{ store.Store }

// Bare returns inner without its optional capabilities.
func Bare(inner store.Store) store.Store { return bare{inner} }

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

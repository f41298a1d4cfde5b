package storetest

import (
	"slices"
	"sync"

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

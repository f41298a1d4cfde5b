package admin

import (
	"context"
	"sync"
)

// syncQueue lets many callers share one sync at a time. Callers that give up take no memory while the disk hangs. The
// zero value is ready. It is safe for concurrent use.
type syncQueue struct {
	mu        sync.Mutex // guards all below
	syncing   bool       // on behalf of now
	now, next map[*syncWaiter]struct{}
}

type syncWaiter struct{ finish func() }

// wait calls finish once all earlier changes are on the disk, unless ctx ends before.
func (q *syncQueue) wait(ctx context.Context, toDisk func(done func()), finish func()) {
	w := &syncWaiter{finish}
	q.mu.Lock()
	if q.next == nil {
		q.next = map[*syncWaiter]struct{}{}
	}
	q.next[w] = struct{}{}
	first := !q.syncing
	q.syncing = true
	q.mu.Unlock()
	context.AfterFunc(ctx, func() { q.leave(w) })
	if first {
		q.begin(toDisk)
	}
}

// begin starts a sync for the callers since the last one began.
func (q *syncQueue) begin(toDisk func(done func())) {
	q.mu.Lock()
	q.now, q.next = q.next, nil
	q.mu.Unlock()
	toDisk(func() {
		for w := range q.end() {
			w.finish()
		}
		q.goOn(toDisk)
	})
}

// end removes and returns the callers of the sync that has ended.
func (q *syncQueue) end() map[*syncWaiter]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended := q.now
	q.now = nil
	return ended
}

func (q *syncQueue) goOn(toDisk func(done func())) {
	q.mu.Lock()
	q.syncing = len(q.next) > 0
	again := q.syncing
	q.mu.Unlock()
	if again {
		q.begin(toDisk)
	}
}

func (q *syncQueue) leave(w *syncWaiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.now, w)
	delete(q.next, w)
}

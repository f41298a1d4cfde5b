package admin

import (
	"context"
	"sync"
)

// syncQueue has many wait for the disk by one sync at a time, so that those who have given up take no memory while the disk
// does not answer. The zero value is ready. It is safe for concurrent use.
type syncQueue struct {
	mu        sync.Mutex // guards all below
	underWay  bool       // a sync is, for those of now
	now, next map[*syncWaiter]struct{}
}

type syncWaiter struct{ finish func() }

// wait calls finish when all that was changed before is on the disk, unless ctx ends before.
func (q *syncQueue) wait(ctx context.Context, toDisk func(done func()), finish func()) {
	w := &syncWaiter{finish}
	q.mu.Lock()
	if q.next == nil {
		q.next = map[*syncWaiter]struct{}{}
	}
	q.next[w] = struct{}{}
	first := !q.underWay
	q.underWay = true
	q.mu.Unlock()
	context.AfterFunc(ctx, func() { q.leave(w) })
	if first {
		q.begin(toDisk)
	}
}

// begin has a sync for all who have come since the last one began.
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

// end returns those who have waited for the sync that has ended.
func (q *syncQueue) end() map[*syncWaiter]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended := q.now
	q.now = nil
	return ended
}

func (q *syncQueue) goOn(toDisk func(done func())) {
	q.mu.Lock()
	q.underWay = len(q.next) > 0
	again := q.underWay
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

package transact

import (
	"context"

	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// Walk returns all keys of the store, for one command.
func (r *Remote) Walk(ctx context.Context) store.Walker { return &walk{Remote: r.Store, ctx: ctx} }

// walk iterates over a remote store. Walker returns no error; walk records the first.
type walk struct {
	store.Remote
	ctx context.Context
	err error
}

var _ store.Walker = (*walk)(nil)

// WalkFailed returns a Walker's recorded error for the reply, or nil.
func WalkFailed(all store.Walker) error {
	if w, ok := all.(*walk); ok && w.err != nil {
		return reply.StoreFailed(w.err)
	}
	return nil
}

// fail records the first error.
func (w *walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Count implements store.Walker. The number of expiring keys is unknown.
func (w *walk) Count(ctx context.Context, _ int64, counts []store.KeyCount) {
	n, err := w.Size(ctx)
	if err != nil {
		w.fail(err)
		return
	}
	counts[0].Keys += n
}

func (w *walk) Scan(nowNs int64, _ uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64) {
	next, err := w.Remote.Scan(w.ctx, nowNs, cursor, count, visit)
	if err != nil {
		w.fail(err)
		return 0
	}
	return next
}

// The catalog of such a store refuses the commands of the following methods.

func (w *walk) MemoryUsage(int64, store.Key) (bytes int, ok bool) {
	w.fail(reply.ErrNoWalk)
	return 0, false
}

func (w *walk) Flush(context.Context, uint16) { w.fail(reply.ErrNoWalk) }

func (w *walk) FlushAll() { w.fail(reply.ErrNoWalk) }

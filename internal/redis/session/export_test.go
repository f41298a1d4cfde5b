package session

import (
	"context"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
)

// HoldBackground prevents background work from beginning until release.
func (e *Engine) HoldBackground() (release func()) {
	who := background.Who{}
	for _, slots := range []*background.Slots{e.Background, e.Scripts} {
		slots.Take(context.Background(), who)
	}
	return func() {
		e.Background.Give(who)
		e.Scripts.Give(who)
	}
}

// CountHanded reports the number of arguments given to each handler on a driver's goroutine, except to the
// package's own, which do not read all of them.
func (e *Engine) CountHanded(seen func(args int)) {
	count := func(c execute.Call, args [][]byte) {
		if !c.InBackground() && !c.HoldsKeys() {
			seen(len(args))
		}
	}
	for i, h := range e.Handlers {
		wrapped := h
		if h.Plain != nil {
			wrapped.Plain = func(c execute.Call, args [][]byte) error { count(c, args); return h.Plain(c, args) }
		}
		if h.Whole != nil {
			wrapped.Whole = func(c execute.Call, all store.Walker,
				args [][]byte) error {
				count(c, args)
				return h.Whole(c, all, args)
			}
		}
		if h.Connection != nil {
			wrapped.Connection = func(c execute.Call, conn execute.Connection, args [][]byte) error {
				count(c, args)
				return h.Connection(c, conn, args)
			}
		}
		e.Handlers[i] = wrapped
	}
}

// FullLaterStore answers batches later and has all capabilities of its store.
type FullLaterStore struct {
	*storetest.LaterStore
	store.Transactor
	store.Watcher
	store.Walker
}

// UpdateStats resolves the parts' common method.
func (f FullLaterStore) UpdateStats(st *store.Stats) { f.LaterStore.UpdateStats(st) }

// NewFullLaterStore returns a store over memory.
func NewFullLaterStore() FullLaterStore {
	inner := shard.New()
	return FullLaterStore{storetest.Later(inner), inner, inner, inner}
}

package session

import (
	"context"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
)

// HoldBackground has nothing begin in the background until release.
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

// CountHanded tells how many arguments handlers are given on a driver's goroutine. Those of the package
// itself are about the session and get many that they do not go through.
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

// FullLaterStore answers batches later, and can do all that the store within can.
type FullLaterStore struct {
	*storetest.LaterStore
	store.Transactor
	store.Watcher
	store.Walker
}

// UpdateStats is the one that the parts have in common.
func (f FullLaterStore) UpdateStats(st *store.Stats) { f.LaterStore.UpdateStats(st) }

// NewFullLaterStore returns one over memory.
func NewFullLaterStore() FullLaterStore {
	inner := shard.New()
	return FullLaterStore{storetest.Later(inner), inner, inner, inner}
}

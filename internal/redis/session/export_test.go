package session

import (
	"context"

	"cellserver/internal/redis/background"
	"cellserver/internal/store"
)

// HoldBackground has nothing begin in the background until release.
func (e *Engine) HoldBackground() (release func()) {
	who := background.Who{}
	for _, slots := range []*background.Slots{e.background, e.scripts} {
		slots.Take(context.Background(), who)
	}
	return func() {
		e.background.Give(who)
		e.scripts.Give(who)
	}
}

// CountHanded tells how many arguments handlers are given on a driver's goroutine. Those of the package
// itself are about the session and get many that they do not go through.
func (e *Engine) CountHanded(seen func(args int)) {
	count := func(s *Session, args [][]byte) {
		if s.role == outer {
			seen(len(args))
		}
	}
	for i, h := range e.handlers {
		wrapped := h
		if h.plain != nil {
			wrapped.plain = func(c Call, args [][]byte) error { count(c.s, args); return h.plain(c, args) }
		}
		if h.whole != nil {
			wrapped.whole = func(c Call, all store.Walker,
				args [][]byte) error {
				count(c.s, args)
				return h.whole(c, all, args)
			}
		}
		if h.connection != nil {
			wrapped.connection = func(c Call, conn Connection, args [][]byte) error {
				count(c.s, args)
				return h.connection(c, conn, args)
			}
		}
		e.handlers[i] = wrapped
	}
}

package execute

import (
	"errors"

	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Handler executes a command by one of its functions.
type Handler struct {
	Plain      func(c Call, args [][]byte) error
	Whole      func(c Call, all store.Walker, args [][]byte) error
	Connection func(c Call, conn Connection, args [][]byte) error
	Own        func(x *Executor, args [][]byte) error // acts on the Executor or the client's conversation

	waitsForStore bool // waits for a remote store
}

// Plain returns the handler of a command that needs only a Call.
func Plain(f func(c Call, args [][]byte) error) Handler { return Handler{Plain: f} }

// Whole returns the handler of a command about all keys, flagged catalog.FlagWhole.
func Whole(f func(c Call, all store.Walker, args [][]byte) error) Handler { return Handler{Whole: f} }

// OnConnection returns the handler of a command about the connection.
func OnConnection(f func(c Call, conn Connection, args [][]byte) error) Handler {
	return Handler{Connection: f}
}

func (h Handler) fits(c *catalog.Command) error {
	switch {
	case c.Refusal != "" || c.Batches || c.Subs != nil && !c.AcceptsArity(1):
		return nil // subcommands or batches execute it
	case h.Plain == nil && h.Whole == nil && h.Connection == nil && h.Own == nil:
		return errors.New("it has no handler")
	case (h.Whole != nil) != (c.Flags&catalog.FlagWhole != 0):
		return errors.New("its handler is for all keys and its flags are not, or the other way round")
	case h.Connection != nil && c.Most() > resp.LongArgs:
		return errors.New("calls with many arguments are executed in the background, without the connection, " +
			"which its handler is about")
	}
	return nil
}

// usesStore reports whether the handler waits for a remote store.
func (h Handler) usesStore(c *catalog.Command) bool {
	return h.Own == nil && !c.Batches && (!c.Keys.None() || c.Flags&catalog.FlagWhole != 0)
}

// WaitsForStore reports whether clients' calls run in the background, waiting for a remote store.
func (h Handler) WaitsForStore() bool { return h.waitsForStore }

// Like returns a copy of the handler that waits for a remote store if the other one does.
func (h Handler) Like(other Handler) Handler {
	h.waitsForStore = other.waitsForStore
	return h
}

// Run executes a command at its time.
func (h Handler) Run(x *Executor, nowNs int64, args [][]byte) error {
	c := Call{x, nowNs}
	switch {
	case h.Plain != nil:
		return h.Plain(c, args)
	case h.Whole != nil:
		if x.Space.All == nil {
			return reply.ErrNoWalk
		}
		return h.Whole(c, x.Space.All, args)
	case h.Connection != nil:
		return h.Connection(c, Connection{x}, args)
	}
	return h.Own(x, args)
}

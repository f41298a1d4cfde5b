package transact

import (
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// NoKeys stands in for the keys of commands without any, and of scripts on a remote store: those that are not
// a single call are refused, single calls run here only to produce their errors.
type NoKeys struct{}

// Throttle implements store.Keys.
func (NoKeys) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].Err = reply.ErrOneCallScript
	}
	return nil
}

// Apply implements store.Keys.
func (NoKeys) Apply(int64, store.Key, store.Step) error { return reply.ErrOneCallScript }

// Entry implements store.Keys.
func (NoKeys) Entry(int64, store.Key) (e store.Entry, ok bool, err error) {
	return e, false, reply.ErrOneCallScript
}

// State implements store.Keys.
func (NoKeys) State(int64, store.Key) (s limiter.State, ok bool, err error) {
	return s, false, reply.ErrOneCallScript
}

// Delete implements store.Keys.
func (NoKeys) Delete(int64, []store.Key) (deleted int, err error) { return 0, reply.ErrOneCallScript }

// Save implements store.Restorer.
func (NoKeys) Save() (undo func()) { return func() {} }

package transact

import (
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// NoKeys stands in for the keys of commands without any, and of scripts on a remote store: those that are not
// a single call are refused, single calls run here only to produce their errors.
type NoKeys struct{}

func (NoKeys) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].Err = reply.ErrOneCallScript
	}
	return nil
}

func (NoKeys) Apply(int64, store.Key, store.Step) error { return reply.ErrOneCallScript }

func (NoKeys) Entry(int64, store.Key) (e store.Entry, ok bool, err error) {
	return e, false, reply.ErrOneCallScript
}

func (NoKeys) State(int64, store.Key) (s limiter.State, ok bool, err error) {
	return s, false, reply.ErrOneCallScript
}

func (NoKeys) Delete(int64, []store.Key) (deleted int, err error) { return 0, reply.ErrOneCallScript }

func (NoKeys) Save() (undo func()) { return func() {} }

package session

import (
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// noKeys is where those commands find keys that have none, and scripts over a store on other machines: one that is no single call
// is refused, and one that is comes here only for the error that it fails with.
type noKeys struct{}

// Throttle implements store.Keys.
func (noKeys) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].Err = reply.ErrOneCallScript
	}
	return nil
}

// Apply implements store.Keys.
func (noKeys) Apply(int64, store.Key, store.Step) error { return reply.ErrOneCallScript }

// Entry implements store.Keys.
func (noKeys) Entry(int64, store.Key) (e store.Entry, ok bool, err error) {
	return e, false, reply.ErrOneCallScript
}

// State implements store.Keys.
func (noKeys) State(int64, store.Key) (s limiter.State, ok bool, err error) {
	return s, false, reply.ErrOneCallScript
}

// Delete implements store.Keys.
func (noKeys) Delete(int64, []store.Key) (deleted int, err error) { return 0, reply.ErrOneCallScript }

// Save implements store.Restorer.
func (noKeys) Save() (undo func()) { return func() {} }

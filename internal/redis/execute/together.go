package execute

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
)

// Together decides requests of funnels as one: all are debited, or none if one is limited, which is what it returns then; see
// decide.Decider.Together for the results. With an error nothing has changed.
func (c Call) Together(batch []store.Request) (limited bool, err error) {
	x := c.x
	if !x.Engine.Transacts() {
		return false, reply.ErrNoTransactions
	}
	if err := x.mayMakeKeys(batch); err != nil {
		return false, err
	}
	failure := x.Role.Together(x, batch, func(in *transact.Space) (keep bool) {
		limited, err = x.Engine.decider.Together(in.Keys, in.NowNs, batch, &x.Scratch.Local)
		return err == nil
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return false, reply.StoreFailed(err)
	}
	return limited, nil
}

// KeysOf returns the keys of requests.
func KeysOf(batch []store.Request) []store.Key {
	keys := make([]store.Key, len(batch))
	for i := range batch {
		keys[i] = batch[i].Key
	}
	return keys
}

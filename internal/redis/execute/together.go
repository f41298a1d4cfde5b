package execute

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
)

// Together decides requests on funnels in one step: all are charged, or none if one is limited, which it
// reports. See decide.Decider.Together for the results. On an error nothing has changed.
func (c Call) Together(batch []store.Request) (limited bool, err error) {
	x := c.x
	if !x.Engine.Transacts() {
		return false, reply.ErrNoTransactions
	}
	if err := x.mayMakeKeys(batch); err != nil {
		return false, err
	}
	j := &x.Scratch.joint // avoids an allocation
	*j = Joint{Batch: batch, x: x}
	err = x.Role.Together(x, j)
	if j.err != nil {
		err = j.err
	}
	limited = j.limited
	*j = Joint{}
	if err != nil {
		return false, reply.StoreFailed(err)
	}
	return limited, nil
}

// Joint is a set of requests decided in one step.
type Joint struct {
	Batch []store.Request

	x       *Executor
	limited bool
	err     error
}

// Decide decides the requests in a transaction and drops it if they failed.
func (j *Joint) Decide(in *transact.Space) transact.Verdict {
	j.limited, j.err = j.x.Engine.Decider.Together(in.Keys, in.NowNs, j.Batch, &j.x.Scratch.Local)
	if j.err != nil {
		return transact.Drop
	}
	return transact.Keep
}

// Keys returns the keys of the requests.
func (j *Joint) Keys() []store.Key {
	keys := make([]store.Key, len(j.Batch))
	for i := range j.Batch {
		keys[i] = j.Batch[i].Key
	}
	return keys
}

package session

import (
	"slices"

	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
)

// Together decides requests of funnels as one: all are debited, or none if one is limited, which is what it returns then; see
// decide.Decider.Together for the results. With an error nothing has changed.
func (c Call) Together(batch []store.Request) (limited bool, err error) {
	s := c.s
	if s.role == away {
		return c.togetherAway(batch)
	}
	if s.engine.txs == nil && s.role == outer {
		return false, reply.ErrNoTransactions
	}
	if err := s.mayMakeKeys(batch); err != nil {
		return false, err
	}
	decide := func(in *transact.Space) (keep bool) {
		limited, err = s.engine.decider.Together(in.Keys, in.NowNs, batch, &s.scratch.local)
		return err == nil
	}
	if s.role != outer {
		transact.OrUndo(s.space, func() (keep bool) { return decide(s.space) })
	} else {
		s.engine.stage.Hold(keysOfBatch(batch), func(in *transact.Space) transact.Verdict {
			if !decide(in) {
				return transact.Drop
			}
			return transact.Keep
		})
	}
	if err != nil {
		return false, reply.StoreFailed(err)
	}
	return limited, nil
}

// togetherAway is Together over a store on other machines.
func (c Call) togetherAway(batch []store.Request) (limited bool, err error) {
	s, requests := c.s, slices.Clone(batch) // for each attempt may change them
	failure := s.engine.remote.Transact(s.inner.ctx, s.engine.config.Now, keysOfBatch(batch), func(in *transact.Space) transact.Verdict {
		copy(batch, requests)
		if limited, err = s.engine.decider.Together(in.Keys, in.NowNs, batch, &s.scratch.local); err != nil {
			return transact.Drop
		}
		return transact.Keep
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return false, reply.StoreFailed(err)
	}
	return limited, nil
}

func keysOfBatch(batch []store.Request) []store.Key {
	keys := make([]store.Key, len(batch))
	for i := range batch {
		keys[i] = batch[i].Key
	}
	return keys
}

// mayMakeKeys refuses requests of which one would make a new key, where the client's address makes too many.
func (s *Session) mayMakeKeys(batch []store.Request) error {
	for i := range batch {
		if q := &batch[i]; s.scratch.limitsNewKeys && q.MakesKey() && !makes(batch[:i], &q.Key) {
			if err := s.mayMakeKey(&q.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

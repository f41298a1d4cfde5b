package execute

import (
	"bytes"

	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// mayMakeKey refuses a new key after the batch where the client's address makes too many.
func (x *Executor) mayMakeKey(key *store.Key) error {
	nowNs := x.Now()
	if _, found, err := x.Space.Keys.Entry(nowNs, *key); err != nil {
		return reply.StoreFailed(err)
	} else if found {
		return nil
	}
	if makes(x.Scratch.batch, key) || x.NewKeys.has(key) {
		return nil
	}
	if limit := x.Engine.Config.NewKeys; !limit.Take(&x.Client.Peer, nowNs) {
		return reply.TooManyNewKeys(limit.PerSec())
	}
	x.NewKeys.add(key)
	return nil
}

// makes reports whether a request creates the key.
func makes(requests []store.Request, key *store.Key) bool {
	for i := range requests {
		if q := &requests[i]; q.Key.DB == key.DB && bytes.Equal(q.Key.Name, key.Name) && q.MakesKey() {
			return true
		}
	}
	return false
}

// mayApply refuses a step that creates a key where the client's address makes too many.
func (x *Executor) mayApply(key *store.Key, step store.Step) error {
	if x.Scratch.limitsNewKeys && step.MakesKey() {
		return x.mayMakeKey(key)
	}
	return nil
}

// mayMakeKeys refuses requests that create a key where the client's address makes too many.
func (x *Executor) mayMakeKeys(batch []store.Request) error {
	for i := range batch {
		if q := &batch[i]; x.Scratch.limitsNewKeys && q.MakesKey() && !makes(batch[:i], &q.Key) {
			if err := x.mayMakeKey(&q.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewKeys are keys that EXEC or a script has created, so that repeated attempts count once.
type NewKeys struct{ names map[newKey]struct{} }

type newKey struct {
	db   uint16
	name string
}

func (k *NewKeys) has(key *store.Key) bool {
	if k == nil {
		return false
	}
	_, ok := k.names[newKey{key.DB, string(key.Name)}]
	return ok
}

func (k *NewKeys) add(key *store.Key) {
	if k == nil {
		return
	}
	if k.names == nil {
		k.names = map[newKey]struct{}{}
	}
	k.names[newKey{key.DB, string(key.Name)}] = struct{}{}
}

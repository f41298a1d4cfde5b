package shard

import (
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
)

// A Store can do all that a store may be able to do.
var (
	_ store.Store      = (*Store)(nil)
	_ store.Walker     = (*Store)(nil)
	_ store.Watcher    = (*Store)(nil)
	_ store.Transactor = (*Store)(nil)
	_ store.Bounded    = (*Store)(nil)
)

func TestConformance(t *testing.T) {
	storetest.Test(t, func(t *testing.T) store.Store {
		s := newStore(4)
		t.Cleanup(func() {
			s.BeginAll(t0).End() // all locks are free
			if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
				t.Errorf("%d keys are still watched in %d shards", entries, maps)
			}
		})
		return s
	})
}

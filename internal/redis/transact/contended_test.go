package transact

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/shard"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/randtest"
)

// TestManyChangesOfOneKey: streams through several cellservers, all on one key of a store a millisecond away,
// which single calls change, too, have a turn in time.
func TestManyChangesOfOneKey(t *testing.T) {
	seed := randtest.Seed(t, 50)
	for _, tt := range []struct {
		name                string
		servers, singleRate int // calls a second
	}{
		{"single calls", 2, 300},
		{"four servers", 4, 0},
		{"eight servers", 8, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const streams, calls = 20, 25
				on, rule := storetest.NewRemote(shard.New()), limitOf(1_000_000)
				take := func(r *Remote, names string) {
					if k := (&taker{names: names, rule: rule}); !t.Failed() {
						if k.run(t.Context(), r); k.err != nil || !k.taken {
							t.Errorf("%+v", k)
						}
					}
				}
				var streaming, all sync.WaitGroup
				for n := range tt.servers {
					r := NewRemote(newDistant(on, time.Millisecond), 0, now)
					for i := range streams {
						random := rand.New(rand.NewPCG(seed, uint64(n*streams+i)))
						streaming.Go(func() {
							for range calls {
								time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
								take(r, fmt.Sprintf("own%d,%d,org", n, i))
							}
						})
					}
				}
				ended := make(chan struct{})
				if near := NewRemote(on, 0, now); tt.singleRate > 0 {
					random := rand.New(rand.NewPCG(seed, 1<<32))
					all.Go(func() {
						for gap := 2 * time.Second / time.Duration(tt.singleRate); ; {
							select {
							case <-ended:
								return
							case <-time.After(time.Duration(random.Int64N(int64(gap)))):
								take(near, "org")
							}
						}
					})
				}
				streaming.Wait()
				close(ended)
				all.Wait()
			})
		})
	}
}

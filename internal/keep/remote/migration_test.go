package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// TestMigration: while a slot moves back and forth, each request is charged once.
func TestMigration(t *testing.T) {
	cluster := redistest.Cluster(t)
	s := onPool(t, Config{}, cluster.URL())
	l := mustLimit(t, 99_999, 1, 3600)
	const keys = 40
	var charged [keys]atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for round := 0; !done.Load() || round < 50; round++ {
				batch := make([]store.Request, 1+(c+round)%7)
				for i := range batch {
					batch[i] = ask(fmt.Sprint("{m}", (c*round+i)%keys), l, 1)
				}
				for i, q := range decide(s, s.Now(), batch...) {
					if q.Err != nil || q.Result.Limited {
						t.Errorf("got %+v", q)
						continue
					}
					charged[(c*round+i)%keys].Add(1)
				}
			}
		})
	}
	from, err := cluster.Master(t.Context(), "{m}")
	if err != nil {
		t.Fatal(err)
	}
	to := cluster.Masters[0]
	if from == to {
		to = cluster.Masters[1]
	}
	slot := int(s.Pool.Slot("{m}"))
	for range 3 {
		if err := cluster.MigrateSlot(slot, from, to).Run(t.Context()); err != nil {
			t.Error(err)
		}
		from, to = to, from
	}
	done.Store(true)
	wg.Wait()
	for i := range charged {
		q := decide(s, s.Now(), ask(fmt.Sprint("{m}", i), l, 0))[0]
		if got := 100_000 - q.Result.Remaining; got != charged[i].Load() || q.Err != nil {
			t.Errorf("key %d: %d units are in it, and %d requests were allowed; %v", i, got, charged[i].Load(), q.Err)
		}
	}
	if st := s.Stats(); st.Resent[servers.Cluster] == 0 || st.Late != 0 {
		t.Errorf("got %+v", st)
	}
}

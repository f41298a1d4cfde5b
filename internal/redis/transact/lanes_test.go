package transact

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"cellserver/internal/store"
)

// TestLanes: of those who want the same keys one has them at a time, however they name them, and who gives up
// waits no more.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes()
		keys := func(names ...int) (all []store.Key) {
			for _, n := range names {
				all = append(all, store.Key{Name: []byte(strconv.Itoa(n))})
			}
			return all
		}
		var busy [10]atomic.Int32
		var wg sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			a, b := random.IntN(10), random.IntN(10)
			wg.Go(func() {
				leave, ok := l.enter(t.Context(), keys(a, b, a))
				if !ok || busy[a].Add(1) != 1 || a != b && busy[b].Add(1) != 1 {
					t.Errorf("%d or %d is somebody else's", a, b)
				}
				busy[a].Store(0)
				busy[b].Store(0)
				leave()
			})
		}
		wg.Wait()
		leave, _ := l.enter(t.Context(), keys(1))
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, ok := l.enter(ctx, keys(0, 1, 2, 3, 4)); ok {
				t.Error("the key was had by two")
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		leave()
		for i := range l.all {
			if len(l.all[i]) != 0 {
				t.Errorf("lane %d is not left", i)
			}
		}
	})
}

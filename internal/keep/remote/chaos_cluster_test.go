package remote

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/test/racetest"
	"cellserver/internal/test/redistest"
)

// TestChaosOfACluster is TestChaos while slots move and batches span several masters.
func TestChaosOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes five seconds")
	}
	racetest.OneAtATime(t)
	c := redistest.Cluster(t)
	s := onPool(t, Config{Timeout: 50 * time.Millisecond}, c.URL())
	patient := onPool(t, Config{}, c.URL())
	keys := chaosKeys(t)
	for i, k := range keys {
		k.request.Key = named(fmt.Sprintf("{%c}%d", "abc"[i%3], i))
	}
	fillChaos(t, patient, keys)
	var ended atomic.Bool
	var wg sync.WaitGroup
	for caller := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(caller), 15))
			for !ended.Load() {
				chaosCall(t, s, keys, rng)
			}
		})
	}
	for i, p := range c.Masters {
		tag := string("abc"[i])
		from, err := c.Master(t.Context(), tag)
		if err != nil {
			t.Fatal(err)
		}
		to := c.Masters[0]
		if to == from {
			to = c.Masters[1]
		}
		if err := c.MigrateSlot(int(s.Pool.Slot(tag)), from, to).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Client().ScriptFlush(t.Context())
		p.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes")
		time.Sleep(50 * time.Millisecond)
		p.Stop()
		time.Sleep(100 * time.Millisecond)
		p.Continue()
		time.Sleep(600 * time.Millisecond) // without faults
	}
	ended.Store(true)
	wg.Wait()
	checkChaos(t, s, patient, keys)
}

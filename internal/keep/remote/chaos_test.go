package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/redistest"
)

// chaos is what was taken from a key, certainly and possibly.
type chaos struct {
	request store.Request
	taken   atomic.Int64
	maybe   atomic.Int64
}

const chaosUnits = 900_000

// TestChaos sends requests of many callers, in batches, alone and in transactions, to two stores, while
// scripts are lost, connections are cut, and the server is stopped, full, or not writable. The keys then hold
// what was allowed, give or take the possible.
func TestChaos(t *testing.T) {
	racetest.OneAtATime(t)
	c := Config{Timeout: 50 * time.Millisecond}
	s, p := onServer(t, c)
	other := onPool(t, c, "redis://"+p.Addr)
	patient := onPool(t, Config{}, "redis://"+p.Addr)
	keys := chaosKeys(t)
	fillChaos(t, patient, keys)
	var ended atomic.Bool
	var wg sync.WaitGroup
	for caller := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(caller), 15))
			for on := [2]*Store{s, other}[caller%2]; !ended.Load(); {
				chaosCall(t, on, keys, rng)
			}
		})
	}
	chaosFaults(t, p)
	answered := func(c *chaos) bool { return c.taken.Load() > 0 }
	if !patience.Until(func() bool { return slices.ContainsFunc(keys, answered) }) {
		t.Error("nothing was answered")
	}
	ended.Store(true)
	wg.Wait()
	checkChaos(t, s, patient, keys)
}

func chaosKeys(t *testing.T) []*chaos {
	large, err := window.NewLimit(funnel.Seconds, chaosUnits, 36000)
	if err != nil {
		t.Fatal(err)
	}
	rules := []limiter.Rule{
		limiter.OfFunnel(mustLimit(t, chaosUnits-1, 1, 3600)),
		{Kind: limiter.FixedWindow, Packed: large.Packed()}, {Kind: limiter.ApproxWindow, Packed: large.Packed()}, {Kind: limiter.Bucket, Packed: limiter.Packed{chaosUnits}},
	}
	var keys []*chaos
	for i := range 12 {
		keys = append(keys, &chaos{request: store.Request{Key: named(fmt.Sprint("k", i)), Rule: rules[i%len(rules)]}})
	}
	return keys
}

// fillChaos fills the buckets.
func fillChaos(t *testing.T, patient *Store, keys []*chaos) {
	for _, c := range keys {
		full := c.request
		full.Quantity = -chaosUnits
		if q := decide(patient, patient.Now(), full)[0]; q.Err != nil {
			t.Fatal(q.Err)
		}
	}
}

// note counts a request by its answer.
func (c *chaos) note(t *testing.T, q *store.Request) {
	var failure store.Failure
	switch {
	case q.Err == nil && !q.Result.Limited:
		c.taken.Add(q.Quantity)
	case q.Err == nil:
		t.Errorf("%s is limited: %+v", q.Key.Name, q.Result)
	case !errors.As(q.Err, &failure) || !strings.HasPrefix(failure.Line, "STOREDOWN "):
		t.Errorf("%s: %v", q.Key.Name, q.Err)
	case strings.HasSuffix(failure.Line, "it may have been charged"):
		c.maybe.Add(q.Quantity)
	}
}

// chaosCall sends a batch of requests, a transaction, or an operation.
func chaosCall(t *testing.T, s *Store, keys []*chaos, rng *rand.Rand) {
	batch, of := make([]store.Request, 1+rng.IntN(8)), make([]*chaos, 8)
	for i := range batch {
		of[i] = keys[rng.IntN(len(keys))]
		batch[i] = of[i].request
		batch[i].Quantity = 1 + rng.Int64N(3)
	}
	switch n := rng.IntN(200); {
	case n == 0:
		if p := s.Throttle(s.Now(), batch); p != nil {
			p.Cancel()
			for i := range batch { // outcomes are unknown
				of[i].maybe.Add(batch[i].Quantity)
			}
			return
		}
	case n < 25:
		batch = chaosTransaction(s, batch)
	default:
		batch = decide(s, s.Now(), batch...)
	}
	for i := range batch {
		of[i].note(t, &batch[i])
	}
}

// chaosTransaction decides requests in a transaction, and returns none after a conflict.
func chaosTransaction(s *Store, batch []store.Request) []store.Request {
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout)
	defer cancel()
	keys := make([]store.Key, len(batch))
	for i := range batch {
		keys[i] = batch[i].Key
	}
	tx, err := s.Begin(ctx, s.Now(), keys)
	if err != nil {
		return nil // nothing was changed
	}
	tx.Throttle(0, batch)
	done, err := tx.Commit(ctx)
	for i := range batch {
		if err != nil {
			batch[i].Err = err
		}
	}
	if !done && err == nil {
		return nil
	}
	return batch
}

// chaosFaults causes each fault a few times.
func chaosFaults(t *testing.T, p *redistest.Process) {
	c, ctx := p.Client(), t.Context()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		for _, fault := range []func(){
			func() { c.ScriptFlush(ctx) },
			func() { c.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes") },
			func() {
				p.Stop()
				time.Sleep(70 * time.Millisecond)
				p.Continue()
				time.Sleep(550 * time.Millisecond) // without faults
			},
			func() {
				c.ConfigSet(ctx, "maxmemory", "1")
				time.Sleep(10 * time.Millisecond)
				c.ConfigSet(ctx, "maxmemory", "0")
			},
			func() {
				c.ConfigSet(ctx, "min-replicas-to-write", "1")
				time.Sleep(10 * time.Millisecond)
				c.ConfigSet(ctx, "min-replicas-to-write", "0")
			},
			func() { c.Do(ctx, "client", "pause", "30", "write") },
			func() { c.Do(ctx, "debug", "sleep", "0.02") },
		} {
			fault()
			time.Sleep(20 * time.Millisecond) // requests are decided meanwhile
		}
	}
}

// checkChaos compares the keys, and checks that nothing is left when the store is closed.
func checkChaos(t *testing.T, s, patient *Store, keys []*chaos) {
	for _, c := range keys {
		q := decide(patient, patient.Now(), c.request)[0] // a look
		taken, maybe := c.taken.Load(), c.maybe.Load()
		if got := chaosUnits - q.Result.Remaining; q.Err != nil || got < taken || got > taken+maybe {
			t.Errorf("%s, a %v: %d units are taken, of %d that were allowed and %d that may have been; %v", q.Key.Name, q.Rule.Kind, got, taken, maybe, q.Err)
		}
	}
	s.Close()
	if st, keys := s.Stats(), s.engine.Keys(); st.Waiting != 0 || st.WaitingBytes != 0 || keys != 0 {
		t.Errorf("%d requests of %d bytes, and %d keys, are waited for still", st.Waiting, st.WaitingBytes, keys)
	}
}

package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestEverythingAtOnce runs all callers on few keys, with sweeps, flushes, splits and merges: no race and no
// deadlock.
func TestEverythingAtOnce(t *testing.T) {
	const rounds = 1500
	s := newStore(4)
	var clock atomic.Int64
	clock.Store(t0)
	now := func() int64 { return clock.Add(sec / 1000) }
	l, short := limit(t, 9, 10, 1), limit(t, 0, 10, 1)
	keysOf := func(rng *rand.Rand) []store.Key {
		keys := make([]store.Key, 1+rng.IntN(12))
		for i := range keys {
			keys[i] = key(uint16(rng.IntN(2)), strings.Repeat(fmt.Sprint(rng.IntN(500)), 1+rng.IntN(8)))
		}
		return keys
	}
	onKeys := func(ks store.Keys, nowNs int64, keys []store.Key) {
		for i, k := range keys {
			tatOf(ks, nowNs, k)
			one(ks, nowNs, k, l, 1)
			if i%3 == 0 {
				remove(ks, nowNs, k)
			}
		}
	}
	sweeper := NewSweeper(s)
	callers := []func(rng *rand.Rand){
		func(rng *rand.Rand) {
			var batch []store.Request
			for _, k := range append(keysOf(rng), keysOf(rng)...) {
				batch = append(batch, store.Request{Key: k, Rule: limiter.OfFunnel(short), Quantity: 1})
			}
			s.Throttle(now(), batch)
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			nowNs := now()
			tx := s.Begin(nowNs, keys)
			onKeys(tx, nowNs, keys)
			tx.Commit()
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			for done := false; !done; {
				nowNs := now()
				tx := s.Begin(nowNs, keys)
				tx.Release()
				onKeys(tx, nowNs, keys)
				done = tx.Commit()
			}
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			w := s.Watch(now(), keys)
			defer w.Close()
			w.Add(now(), keysOf(rng))
			nowNs := now()
			x := s.BeginAll(nowNs)
			defer x.End()
			if !w.Dirty(nowNs) {
				onKeys(x, nowNs, keys)
				x.Scan(nowNs, 0, 0, 50, func(k store.Key, _ store.Entry) { x.MemoryUsage(nowNs, k) })
			}
			x.UpdateStats(new(store.Stats))
		},
		func(rng *rand.Rand) {
			nowNs := now()
			onKeys(s, nowNs, keysOf(rng))
			if _, err := s.Delete(nowNs, keysOf(rng)); err != nil {
				t.Error(err)
			}
			s.Scan(nowNs, 1, rng.Uint64N(1<<cursorBits), 20, func(k store.Key, _ store.Entry) { s.MemoryUsage(nowNs, k) })
			s.Count(context.Background(), nowNs, make([]store.KeyCount, 2))
		},
		func(rng *rand.Rand) {
			switch rng.IntN(10) {
			case 0:
				s.Flush(context.Background(), uint16(rng.IntN(2)))
			case 1:
				s.FlushAll()
			default:
				sweeper.Step(now())
			}
		},
	}
	var wg sync.WaitGroup
	for g, call := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(21, uint64(g)))
			for range rounds {
				call(rng)
			}
		})
	}
	wg.Wait()
	if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
		t.Errorf("%d keys are still watched in %d shards", entries, maps)
	}
}

package shard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestByKeyKnowsOnlyItsKeys(t *testing.T) {
	s := New()
	tx := s.Begin(t0, []Key{key(0, "k")})
	defer func() {
		if recover() == nil {
			t.Error("a key that was not given to Begin did not panic")
		}
		tx.Rollback()
		s.BeginAll(t0).End() // all locks are free
	}()
	tx.ByKey().Delete(key(0, "another"))
}

func TestExclusiveKeepsOthersOut(t *testing.T) {
	s, l := New(), limit(t, 1<<20, 1, 3600)
	var inside atomic.Bool
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				switch (g + i) % 4 {
				case 0:
					x := s.BeginAll(t0)
					inside.Store(true)
					before, _ := x.TAT(key(0, "k"))
					x.Throttle(key(0, "k"), l, 1)
					if after, _ := x.TAT(key(0, "k")); after-before != 3600*sec {
						t.Errorf("others changed the key: %d, then %d", before, after)
					}
					inside.Store(false)
					x.End()
					x.End()
				case 1:
					one(s, t0, key(0, "k"), l, 1)
				default:
					tx := s.Begin(t0, []Key{key(0, "k"), key(0, fmt.Sprint(i))})
					if inside.Load() {
						t.Error("a Tx began while the store was another's")
					}
					tx.Throttle(0, l, 1)
					tx.Commit()
				}
			}
		})
	}
	wg.Wait()
	if r := one(s, t0, key(0, "k"), l, 0); r.Limit-r.Remaining != 800 {
		t.Errorf("%d units, want 800", r.Limit-r.Remaining)
	}
}

func TestExclusiveFlushGivesMemoryBack(t *testing.T) {
	s := New()
	fill(t, s, t0, 1000, "k", 60)
	x := s.BeginAll(t0)
	x.Flush(0)
	x.End()
	if segments, directory := segments(s); segments != 0 || directory != 0 {
		t.Errorf("%d segments and %d directory entries are left", segments, directory)
	}
}

// TestMemoryUsageAddsUp: all keys together cost what the tables have taken.
func TestMemoryUsageAddsUp(t *testing.T) {
	for _, keys := range []int{1, 100, 5000} {
		s := newStore(4)
		if _, ok := s.MemoryUsage(t0, key(0, "absent")); ok {
			t.Error("an absent key costs something")
		}
		for i := range keys {
			put(t, s, t0, key(uint16(i%2), strings.Repeat(fmt.Sprint(i, "-"), 1+i%11)), 60)
		}
		put(t, s, t0, key(0, strings.Repeat("alone", arenaKeyBytes)), 60)
		sum, n := 0, 0
		for db := range uint16(2) {
			s.Scan(t0, db, 0, 1<<30, func(k Key, _ int64) {
				bytes, ok := s.MemoryUsage(t0, k)
				if !ok {
					t.Errorf("%.20q costs nothing", k.Name)
				}
				sum, n = sum+bytes, n+1
			})
		}
		taken := s.tableBytes() + arenaBytes(s)
		for i := range s.shards {
			if a := &s.shards[i].table.arenas; len(a.bufs) > 0 {
				taken += sliceHeaderBytes * (len(a.bufs) - 1 - len(a.free))
			}
		}
		// A shard without keys has no segments, and shares are rounded up, twice for a long key.
		if sum < taken || sum > taken+2*n || n != keys+1 {
			t.Errorf("%d keys cost %d bytes, of %d", n, sum, taken)
		}
		if _, ok := s.MemoryUsage(t0+60*sec, key(0, "0-")); ok {
			t.Error("an expired key costs something")
		}
	}
}

// TestEverythingAtOnce has callers of all sorts on few keys: no race, and nobody waits for ever. It goes through
// sweeps, flushes, splits and merges.
func TestEverythingAtOnce(t *testing.T) {
	const rounds = 1500
	s := newStore(4)
	var clock atomic.Int64
	clock.Store(t0)
	now := func() int64 { return clock.Add(sec / 1000) }
	l, short := limit(t, 9, 10, 1), limit(t, 0, 10, 1)
	keysOf := func(rng *rand.Rand) []Key {
		keys := make([]Key, 1+rng.IntN(12))
		for i := range keys {
			keys[i] = key(uint16(rng.IntN(2)), strings.Repeat(fmt.Sprint(rng.IntN(500)), 1+rng.IntN(8)))
		}
		return keys
	}
	onKeys := func(ks keyspace, keys []Key) {
		for i, k := range keys {
			ks.TAT(k)
			ks.Throttle(k, l, 1)
			if i%3 == 0 {
				ks.Delete(k)
			}
		}
	}
	var tx [2]Tx // one for each caller of its sort
	sweeper := NewSweeper(s)
	callers := []func(rng *rand.Rand){
		func(rng *rand.Rand) {
			var batch []Request
			for _, k := range append(keysOf(rng), keysOf(rng)...) {
				batch = append(batch, Request{Key: k, Limit: short, Quantity: 1})
			}
			s.Throttle(now(), batch)
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			tx[0].Begin(s, now(), keys)
			onKeys(tx[0].ByKey(), keys)
			tx[0].Commit()
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			for done := false; !done; done = tx[1].Commit() {
				tx[1].Begin(s, now(), keys)
				tx[1].Release()
				onKeys(tx[1].ByKey(), keys)
			}
		},
		func(rng *rand.Rand) {
			keys := keysOf(rng)
			w := s.Watch(now(), keys)
			defer w.Close()
			w.Add(now(), keysOf(rng))
			x := s.BeginAll(now())
			defer x.End()
			if !w.Dirty(x.nowNs) {
				onKeys(x, keys)
				x.Scan(0, 0, 50, func(k Key, _ int64) { x.MemoryUsage(k) })
			}
			x.UpdateStats(new(Stats))
		},
		func(rng *rand.Rand) {
			a := s.At(now())
			onKeys(a, keysOf(rng))
			a.Scan(1, rng.Uint64N(1<<cursorBits), 20, func(k Key, _ int64) { a.MemoryUsage(k) })
			a.Count(make([]int, 2))
		},
		func(rng *rand.Rand) {
			switch rng.IntN(10) {
			case 0:
				s.Flush(uint16(rng.IntN(2)))
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

// TestSetTAT, by a transaction and with all of the store: what it leaves, and who is told.
func TestSetTAT(t *testing.T) {
	const absent = int64(0)
	for _, tt := range []struct {
		name         string
		before       int64 // of the key, in seconds from now; absent for none
		set          []int64
		want         int64
		dirty, whole bool // whether a watch notices, by a transaction and with all of the store
	}{
		{"a new key", absent, []int64{30}, 30, true, true},
		{"longer", 10, []int64{30}, 30, true, true},
		{"shorter", 30, []int64{10}, 10, true, true},
		{"none", 30, []int64{0}, absent, true, true},
		{"long ago", 30, []int64{-99}, absent, true, true},
		{"none again", absent, []int64{0}, absent, false, true},
		{"as it was", 30, []int64{30}, 30, false, true},
		{"there and back", 30, []int64{10, 30}, 30, false, true},
		{"new and gone", absent, []int64{10, 0}, absent, false, true},
		{"twice", 30, []int64{10, 20}, 20, true, true},
	} {
		for _, whole := range []bool{false, true} {
			s, k := New(), key(3, "k")
			if tt.before != absent {
				put(t, s, t0, k, tt.before)
			}
			w := s.Watch(t0, []Key{k})
			tx := new(Tx)
			var in interface {
				keyspace
				SetTAT(key Key, tatNs int64)
			}
			end := func() { tx.Commit() }
			if whole {
				x := s.BeginAll(t0)
				in, end = x, x.End
			} else {
				tx.Begin(s, t0, []Key{k, key(3, "other")})
				in = tx.ByKey()
			}
			for _, atSec := range tt.set {
				in.SetTAT(k, t0+atSec*sec)
				if tatNs, ok := in.TAT(k); ok != (atSec > 0) || ok && tatNs != t0+atSec*sec {
					t.Errorf("%s: reads %d, %t after %d", tt.name, tatNs-t0, ok, atSec)
				}
			}
			end()
			tatNs, ok := s.TAT(t0, k)
			if ok != (tt.want != absent) || ok && tatNs != t0+tt.want*sec {
				t.Errorf("%s, whole %t: left %d s, %t; want %d", tt.name, whole, (tatNs-t0)/sec, ok, tt.want)
			}
			if got, want := w.Dirty(t0), !whole && tt.dirty || whole && tt.whole; got != want {
				t.Errorf("%s, whole %t: dirty is %t", tt.name, whole, got)
			}
			w.Close()
		}
	}
}

// TestSetTATAndConflicts: a released transaction that has taken back what it wrote has nothing to lose to others.
func TestSetTATAndConflicts(t *testing.T) {
	s, k, l := New(), key(0, "k"), limit(t, 9, 1, 10)
	for _, takeBack := range []bool{false, true} {
		tx := s.Begin(t0, []Key{k})
		tx.Release()
		in := tx.ByKey()
		found, _ := in.TAT(k)
		in.Throttle(k, l, 2)
		if takeBack {
			in.SetTAT(k, found)
		}
		one(s, t0, k, l, 1)
		if committed := tx.Commit(); committed != takeBack {
			t.Errorf("took back is %t, and committed %t", takeBack, committed)
		}
	}
	if r := one(s, t0, k, l, 0); r.Remaining != 8 {
		t.Errorf("%d remain, want 8", r.Remaining)
	}
}

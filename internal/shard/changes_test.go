package shard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/store"
)

// replica is what Changes has told of a store.
type replica map[id]int64

func (r replica) follow(s *Store, nowNs int64) (complete bool) {
	return store.Round(s, nowNs, func(c store.Change) {
		switch {
		case c.Flushed:
			clear(r)
		case c.State.ExpiresNs <= nowNs:
			delete(r, idOf(c.Key))
		default:
			r[idOf(c.Key)] = c.State.ExpiresNs
		}
	})
}

func (r replica) check(t *testing.T, s *Store, nowNs int64) {
	t.Helper()
	live := r.checkLive(t, s, nowNs)
	maps.DeleteFunc(r, func(_ id, tatNs int64) bool { return tatNs <= nowNs })
	if live != len(r) {
		t.Fatalf("%d keys live, %d were told of", live, len(r))
	}
}

// checkLive follows the store and returns the number of live keys. Evicted ones may have been told of.
func (r replica) checkLive(t *testing.T, s *Store, nowNs int64) (live int) {
	t.Helper()
	anew := !r.follow(s, nowNs) // complete is false: start anew
	if anew {
		clear(r)
	}
	for db := range uint16(3) {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			cursor = s.Scan(nowNs, db, cursor, 1000, func(k store.Key, e store.Entry) {
				tatNs := e.ExpiresNs
				if anew {
					r[idOf(k)] = tatNs
				}
				if live++; r[idOf(k)] != tatNs {
					t.Fatalf("%.30q in %d has TAT %d, and %d was told", k.Name, k.DB, tatNs, r[idOf(k)])
				}
			})
		}
	}
	return live
}

// TestManyAreGone: forgotten removals are reported.
func TestManyAreGone(t *testing.T) {
	s, r := newStore(1), replica{}
	s.Track(func() {})
	const n = 2 * 2 * goneBytes / 100
	name := func(i int) store.Key { return key(0, fmt.Sprint(strings.Repeat("x", 100), i)) }
	for i := range n {
		put(t, s, t0, name(i), 60)
	}
	r.check(t, s, t0)
	for i := range n {
		remove(s, t0, name(i))
	}
	if r.follow(s, t0) {
		t.Error("all was told, of more than is remembered")
	}
	for i := range n / 10 {
		put(t, s, t0, name(i), 60)
		remove(s, t0, name(i))
	}
	if !r.follow(s, t0) {
		t.Error("not all was told, of a few")
	}
}

// TestGoneSooner: a key with a lowered TAT that expires or is evicted unseen is reported as removed;
// otherwise its old state would return.
func TestGoneSooner(t *testing.T) {
	for _, name := range []string{"short", strings.Repeat("long", 10)} {
		evict := func(nowNs int64) func(s *Store) {
			return func(s *Store) {
				s.SetMaxBytes(1, store.VolatileTTL)
				for i := range 1000 {
					put(t, s, nowNs, key(0, fmt.Sprintf("%0*d", len(name), i)), 60)
				}
			}
		}
		for how, expire := range map[string]func(s *Store){
			"swept":          func(s *Store) { sweepOnce(s, t0+15*sec) },
			"still there":    func(*Store) {},
			"evicted later":  evict(t0 + 15*sec),
			"evicted before": evict(t0),
		} {
			s, r, l := newStore(1), replica{}, limit(t, 100, 1, 1)
			s.Track(func() {})
			k := key(0, name)
			one(s, t0, k, l, 90)
			r.follow(s, t0)
			one(s, t0, k, l, -80)
			expire(s)
			r.follow(s, t0+15*sec)
			if tatNs := r[idOf(k)]; tatNs > t0+15*sec {
				t.Errorf("%s, %s: it is told to live for %d s", name, how, (tatNs-t0)/sec-15)
			}
		}
	}
}

// TestFuzzyStates: States under concurrent changes, followed by Changes, yield the same store.
func TestFuzzyStates(t *testing.T) {
	const keys = 20_000
	s, l := newStore(2), limit(t, 10, 1, 5)
	s.Track(func() {})
	k := func(i int) store.Key { return key(uint16(i%3), fmt.Sprintf("%0*d", 5+i%40, i)) }
	var done atomic.Bool
	var wait sync.WaitGroup
	for i := range keys {
		one(s, t0, k(i), l, 1)
	}
	wait.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for !done.Load() {
			switch i := rng.IntN(2 * keys); rng.IntN(3) {
			case 0:
				one(s, t0, k(i), l, 1)
			case 1:
				one(s, t0, k(i), l, -1)
			default:
				remove(s, t0, k(i))
			}
		}
	})
	r := replica{}
	r.follow(s, t0)
	s.States(t.Context(), t0, func(c store.Change) { r[idOf(c.Key)] = c.State.ExpiresNs }, nil)
	complete := r.follow(s, t0)
	done.Store(true)
	wait.Wait()
	complete = r.follow(s, t0) && complete
	if complete {
		r.check(t, s, t0)
	}
	other := newStore(3)
	s.States(t.Context(), t0, func(c store.Change) { other.Restore(t0, 0, 1, []store.Change{c}) }, nil)
	r = replica{}
	other.States(t.Context(), t0, func(c store.Change) { r[idOf(c.Key)] = c.State.ExpiresNs }, nil)
	r.check(t, s, t0)
	other.Restore(t0, 0, 1, []store.Change{{Flushed: true}})
	if n := statsOf(other).Keys; n != 0 {
		t.Errorf("%d keys are left of a flushed store", n)
	}
}

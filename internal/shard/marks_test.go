package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// checkListed fails for a marked entry in an unlisted segment, and for a segment listed twice.
func checkListed(t *testing.T, s *Store) (marked int) {
	t.Helper()
	for i := range s.shards {
		sh := &s.shards[i]
		for _, tb := range sh.tables() {
			listed := map[*segment]bool{}
			for _, seg := range tb.changes.segments {
				if listed[seg] || !seg.listed {
					t.Fatalf("shard %d: a segment is listed twice, or does not know of it", i)
				}
				listed[seg] = true
			}
			for _, seg := range tb.directory {
				if seg.listed != listed[seg] {
					t.Fatalf("shard %d: a segment is listed: %t, and knows: %t", i, listed[seg], seg.listed)
				}
				tb.each(seg, func(b *bucket, slot int) {
					if tb.isMarked(b, slot, markMask) {
						if marked++; !listed[seg] {
							t.Fatalf("shard %d: a marked entry is not listed", i)
						}
					}
				})
			}
		}
	}
	return marked
}

// TestMarkedIsListed: marked segments are always listed, and a follower has the same keys and states, though
// perhaps evicted ones with a bound, as in every second run.
func TestMarkedIsListed(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(6) {
		if racetest.IsQuick() && seed > 1 { // one is bounded
			break
		}
		s, r, l, bounded := newStore(1), replica{}, limit(t, 10, 1, 5), seed%2 == 0
		s.Track(func() {})
		rng := rand.New(rand.NewPCG(9, seed))
		n := 1500
		k := func() store.Key {
			i := rng.IntN(n)
			return key(uint16(i%3), fmt.Sprintf("%0*d", []int{5, 12, 20, 128, 129, 1000, arenaKeyBytes, arenaKeyBytes + 1}[i%8], i))
		}
		now, sweeper, seen := t0, NewSweeper(s), 0
		for i := range 40_000 {
			now += rng.Int64N(sec / 300)
			switch op := rng.IntN(1000); {
			case op < 500:
				one(s, now, k(), l, 1+rng.Int64N(4))
			case op < 600:
				one(s, now, k(), l, -1-rng.Int64N(3))
			case op < 650:
				remove(s, now, k())
			case op < 700:
				tx := s.Begin(now, []store.Key{k(), k(), k()})
				if rng.IntN(2) == 0 {
					tx.Release()
				}
				for _, st := range tx.(interface{ keys() []store.Key }).keys() {
					_, _, _ = store.SetIf(tx, now, st, limiter.State{ExpiresNs: now + rng.Int64N(20*sec)}, store.Always) // or it has no room
				}
				tx.Commit()
			case op < 720:
				x := s.BeginAll(now)
				for range 5 {
					_, _, _ = store.SetIf(x, now, k(), limiter.State{ExpiresNs: now + rng.Int64N(20*sec)}, store.Always)
				}
				x.End()
			case op < 960:
				sweeper.Step(now)
			case op < 970 && !bounded:
			case op < 970:
				s.SetMaxBytes([]int64{0, 1 << 15, 1 << 17}[rng.IntN(3)], []store.Policy{store.VolatileTTL, store.NoEviction}[rng.IntN(2)])
			case op < 971:
				s.Flush(context.Background(), uint16(rng.IntN(3)))
			case op < 972:
				s.FlushAll()
			case op < 974:
				n = 50 + rng.IntN(6000)
				now += 3 * sec
			}
			if i%10 == 0 {
				seen = max(seen, checkListed(t, s))
			}
			switch {
			case i%500 > 0:
			case bounded:
				r.checkLive(t, s, now)
			default:
				r.check(t, s, now)
			}
		}
		if seen == 0 {
			t.Error("nothing was marked")
		}
	}
}

func (t *tx) keys() (keys []store.Key) {
	for i := range t.states {
		keys = append(keys, t.states[i].key)
	}
	return keys
}

// TestListedWhileNobodyAsks: during a long disk failure the list does not grow with each split.
func TestListedWhileNobodyAsks(t *testing.T) {
	s := newStore(1)
	s.Track(func() {})
	now, sweeper := t0, NewSweeper(s)
	for range 20 {
		for i := range 5000 {
			put(t, s, now, key(0, fmt.Sprint(i)), 10)
		}
		put(t, s, now, key(0, "stays"), 1000)
		now += 20 * sec
		for range 2000 {
			sweeper.Step(now)
		}
	}
	if n, made := len(s.shards[0].inline.changes.segments), s.shards[0].inline.made; n > 200 {
		t.Errorf("%d segments are listed, and there are %d", n, made)
	}
}

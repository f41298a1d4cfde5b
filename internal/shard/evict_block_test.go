package shard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// blockRule returns the rule of a limit of one unit an hour, with blocks.
func blockRule(t *testing.T, forSec int64) limiter.Rule {
	own := limiter.PlainRule(limit(t, 0, 1, 3600), 3600*sec).Blocking(forSec*sec, false, fmt.Sprint(forSec))
	return limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{own}, 0))
}

// block exceeds a limit on a key.
func block(t *testing.T, s *Store, nowNs int64, k store.Key, r limiter.Rule) {
	t.Helper()
	batch := []store.Request{{Key: k, Rule: r, Quantity: 1}, {Key: k, Rule: r, Quantity: 1}}
	if s.Throttle(nowNs, batch); batch[0].Err != nil || batch[1].Err != nil || !batch[1].Result.Limited {
		t.Fatalf("%+v, then %+v", batch[0], batch[1])
	}
}

func blockedKeys(s *Store, nowNs int64, keys []store.Key) (blocked int) {
	for _, k := range keys {
		if state, ok, _ := s.State(nowNs, k); ok && limiter.BlockedUntil(&state, nowNs) > 0 {
			blocked++
		}
	}
	return blocked
}

// TestFloodsEndNoBlocks: new keys, of any kind and longer lives, take the place of others, not of those with
// a block.
func TestFloodsEndNoBlocks(t *testing.T) {
	const maxBytes, blocked, flood = 2 << 20, 2000, 60_000
	s := newStore(2)
	s.SetMaxBytes(maxBytes, store.VolatileTTL)
	short := blockRule(t, 600) // ends before the keys of the flood
	var keys []store.Key
	for i := range blocked {
		name := fmt.Sprint("login:", i)
		if i%2 == 1 {
			name = strings.Repeat("long", 10) + name
		}
		k := key(0, name)
		keys = append(keys, k)
		block(t, s, t0, k, short)
	}
	plain := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{limiter.PlainRule(limit(t, 9, 1, 3600), 3600*sec)}, 0))
	sweeper := NewSweeper(s)
	for i := range flood {
		name := []string{"", strings.Repeat("x", 20), strings.Repeat("y", 60)}[i%3] + fmt.Sprint(i)
		batch := []store.Request{{Key: key(0, name), Rule: []limiter.Rule{plain, limiter.OfFunnel(limit(t, 9, 1, 7200))}[i%2], Quantity: 1}}
		if s.Throttle(t0, batch); batch[0].Err != nil {
			t.Fatal(batch[0].Err)
		}
		sweeper.Step(t0)
	}
	checkBudget(t, s)
	if got, st := blockedKeys(s, t0, keys), statsOf(s); got != blocked || st.Evicted < flood/4 {
		t.Errorf("%d of %d keys are blocked, and %d were evicted", got, blocked, st.Evicted)
	}
}

// TestSoonestEndingBlocksGo: where all keys are blocked, those go whose blocks end first. None is refused.
func TestSoonestEndingBlocksGo(t *testing.T) {
	const maxBytes, many = 1 << 20, 30_000
	s := newStore(1)
	s.SetMaxBytes(maxBytes, store.VolatileTTL)
	long, short := blockRule(t, 86_400), blockRule(t, 7200)
	var late, soon []store.Key
	for i := range many {
		k := key(0, fmt.Sprint("k", i))
		if i%8 == 0 && len(late) < 1500 {
			late = append(late, k)
			block(t, s, t0, k, long)
		} else {
			soon = append(soon, k)
			block(t, s, t0, k, short)
		}
	}
	checkBudget(t, s)
	st := statsOf(s)
	if got := blockedKeys(s, t0, late); got < len(late)*95/100 || st.Evicted == 0 || st.Bytes > maxBytes+maxBytes/8 {
		t.Errorf("%d of %d blocks that end last are there, %d of %d others, %d evicted, %d bytes",
			got, len(late), blockedKeys(s, t0, soon), len(soon), st.Evicted, st.Bytes)
	}
}

// TestDenialsWithoutRoom: a denial holds where its block can be stored no more, and begins it once it can.
func TestDenialsWithoutRoom(t *testing.T) {
	fill := func(s *Store) {
		s.SetMaxBytes(100<<10, store.NoEviction)
		for i, full := 0, false; !full; i++ {
			batch := []store.Request{{Key: key(0, strings.Repeat("x", 60)+fmt.Sprint(i)), Rule: limiter.OfFunnel(limit(t, 0, 1, 3600)), Quantity: 1}}
			s.Throttle(t0, batch)
			full = errors.Is(batch[0].Err, store.ErrFull)
		}
		s.SetMaxBytes(int64(statsOf(s).Bytes), store.NoEviction)
	}
	for name, deny := range map[string]func(s *Store) (allow func()){
		"frozen": func(s *Store) func() {
			s.Freeze(t0, store.ErrFrozen)
			return func() { s.Freeze(store.Never, nil) }
		},
		"full": func(s *Store) func() {
			fill(s)
			return func() { s.SetMaxBytes(0, store.NoEviction) }
		},
	} {
		for _, inTx := range []bool{false, true} {
			s, k, rule := newStore(1), key(0, "login:ann"), blockRule(t, 600)
			throttle := func() store.Request {
				batch := []store.Request{{Key: k, Rule: rule, Quantity: 1}}
				if !inTx {
					s.Throttle(t0, batch)
					return batch[0]
				}
				tx := s.Begin(t0, []store.Key{k})
				tx.Throttle(t0, batch)
				tx.Commit()
				return batch[0]
			}
			if q := throttle(); q.Err != nil || q.Result.Limited {
				t.Fatalf("%+v", q)
			}
			allow := deny(s)
			for range 2 {
				if q := throttle(); q.Err != nil || !q.Result.Limited || q.Result.RetryAfter != 3600 {
					t.Errorf("%s, in a transaction %t: %+v", name, inTx, q)
				}
			}
			allow()
			if q := throttle(); q.Err != nil || !q.Result.Limited || blockedKeys(s, t0, []store.Key{k}) != 1 {
				t.Errorf("%s, in a transaction %t, afterwards: %+v", name, inTx, q)
			}
		}
	}
}

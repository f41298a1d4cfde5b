package shard

import (
	"errors"
	"fmt"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestFullStoreChangesShapes: in a full store that refuses new keys, a transaction changes states of shapes
// that are there, as a call by itself does.
func TestFullStoreChangesShapes(t *testing.T) {
	t.Parallel()
	two := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{
		limiter.PlainRule(limit(t, 100, 1, 60), 60*sec), limiter.PlainRule(limit(t, 100, 1, 3600), 3600*sec),
	}, 0))
	for name, rule := range map[string]limiter.Rule{"a window": windowRule(limiter.FixedWindow, 100, 3600), "two funnels": two} {
		s := newStore(2)
		s.SetMaxBytes(100<<10, store.NoEviction)
		var in []store.Key
		for i, full := 0, false; !full; i++ {
			batch := []store.Request{{Key: key(0, fmt.Sprint("key", i)), Rule: rule, Quantity: 1}}
			if s.Throttle(t0, batch); batch[0].Err == nil {
				in = append(in, batch[0].Key)
			}
			full = errors.Is(batch[0].Err, store.ErrFull) && i > 10_000
		}
		s.SetMaxBytes(int64(statsOf(s).Bytes), store.NoEviction)
		for i := range s.shards {
			if s.shards[i].packed.count == 0 {
				t.Fatalf("%s: no state is of a shape", name)
			}
		}
		for _, k := range in {
			tx := s.Begin(t0, []store.Key{k})
			for range 2 {
				batch := []store.Request{{Key: k, Rule: rule, Quantity: 1}}
				if tx.Throttle(t0, batch); batch[0].Err != nil {
					t.Fatalf("%s: a state that is there: %v", name, batch[0].Err)
				}
			}
			tx.Commit()
			tx.Rollback()
		}
	}
}

// TestFullStoreShrinksStates: in a full store that refuses new keys, a state of two rules becomes one of one
// rule, which is smaller.
func TestFullStoreShrinksStates(t *testing.T) {
	t.Parallel()
	minute, hour := limiter.PlainRule(limit(t, 100, 1, 60), 60*sec), limiter.PlainRule(limit(t, 100, 1, 3600), 3600*sec)
	both := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{minute, hour}, 0))
	one := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{hour}, 0))
	s := newStore(2)
	for i := range 2000 {
		s.Throttle(t0, []store.Request{{Key: key(0, fmt.Sprint("key", i)), Rule: both, Quantity: 1}})
	}
	s.SetMaxBytes(int64(statsOf(s).Bytes), store.NoEviction)
	for i := range 2000 {
		batch := []store.Request{{Key: key(0, fmt.Sprint("key", i)), Rule: one, Quantity: 1}}
		if s.Throttle(t0+61*sec, batch); batch[0].Err != nil {
			t.Fatalf("state %d: %v", i, batch[0].Err)
		}
	}
}

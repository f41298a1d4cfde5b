package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestToldOfALargerTAT: a caller that saw a TAT is not denied by an earlier one left by another limit.
func TestToldOfALargerTAT(t *testing.T) {
	wide, narrow := mustLimit(t, 9, 1, 100), mustLimit(t, 0, 1, 100)
	debit := func(s *Store, quantity int64) error { return decide(s, s.Now(), ask("k", wide, quantity))[0].Err }
	operate := func(o limiter.Operation) func(s, other *Store) error {
		return func(s, _ *Store) error { return s.Apply(s.Now(), named("k"), &o) }
	}
	for name, raise := range map[string]func(s, other *Store) error{
		"by a request":     func(s, _ *Store) error { return debit(s, 5) },
		"by who waits":     operate(limiter.Operation{Verb: limiter.Wait, Funnel: wide, Quantity: 5}),
		"by a reservation": operate(limiter.Operation{Verb: limiter.Reserve, Funnel: wide, Quantity: 5, ID: 1, TTLNs: 3600 * sec}),
		"in a transaction": func(s, _ *Store) error {
			return inTransaction(t, s, func(keys store.Keys) error {
				batch := []store.Request{ask("k", wide, 5)}
				keys.Throttle(s.Now(), batch)
				return batch[0].Err
			})
		},
		"by looking at it": func(s, other *Store) error {
			look := &limiter.Operation{Verb: limiter.Look}
			return errors.Join(debit(other, 5), s.Apply(s.Now(), named("k"), look))
		},
		"by reading it": func(s, other *Store) error {
			_, _, err := s.State(s.Now(), named("k"))
			err = errors.Join(err, debit(other, 5))
			_, _, again := s.State(s.Now(), named("k"))
			return errors.Join(err, again)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := onServer(t, Config{})
			other := onPool(t, Config{}, "redis://"+p.Addr)
			if err := debit(s, 3); err != nil {
				t.Fatal(err)
			}
			if q := decide(s, s.Now(), ask("k", narrow, 1))[0]; !q.Result.Limited || q.Result.RetryAfter > 300 {
				t.Fatalf("got %+v, %v", q.Result, q.Err)
			}
			if err := raise(s, other); err != nil {
				t.Fatal(err)
			}
			if q := decide(s, s.Now(), ask("k", narrow, 1))[0]; !q.Result.Limited || q.Result.RetryAfter < 500 {
				t.Errorf("got %+v, %v; want to retry after 800 s", q.Result, q.Err)
			}
		})
	}
}

// inTransaction changes the key k and commits.
func inTransaction(t *testing.T, s *Store, do func(store.Keys) error) error {
	t.Helper()
	for {
		tx, err := s.Begin(t.Context(), s.Now(), []store.Key{named("k")})
		if err != nil {
			return err
		}
		err = do(tx)
		if done, failed := tx.Commit(t.Context()); done || failed != nil {
			return errors.Join(err, failed)
		}
	}
}

// TestAnythingDoneToAKey: after any change of a key, the next request is decided by the server's state, and
// never told to retry too soon.
func TestAnythingDoneToAKey(t *testing.T) {
	s, p := onServer(t, Config{})
	random := rand.New(rand.NewPCG(9, 26))
	limits := []funnel.Limit{mustLimit(t, 9, 1, 100), mustLimit(t, 0, 1, 100), mustLimit(t, 2, 1, 50)}
	rounds := 6_000
	if testing.Short() {
		rounds = 1_500
	}
	limited := 0
	for i := range rounds {
		name, do := anything(t, random, limits, uint64(i))
		var way string
		var err error
		if random.IntN(3) == 0 {
			way = " in a transaction"
			err = inTransaction(t, s, func(keys store.Keys) error { return do(s.Now(), keys) })
		} else {
			err = do(s.Now(), s)
		}
		if err != nil {
			t.Fatalf("%s%s: %v", name, way, err)
		}
		for range random.IntN(4) {
			q := ask("k", limits[random.IntN(len(limits))], 1+random.Int64N(3))
			was := stateOf(t, p.Client())
			before := resultOf(t, &q, was, s.Now())
			got := decide(s, s.Now(), q)[0]
			after := resultOf(t, &q, was, s.Now())
			switch {
			case before.Limited != after.Limited: // either is right
			case got.Err != nil || got.Result.Limited != before.Limited ||
				got.Result.RetryAfter < after.RetryAfter || got.Result.RetryAfter > before.RetryAfter+1:
				t.Fatalf("round %d: after %s%s, %d units: got %+v, %v; want %+v to %+v",
					i, name, way, q.Quantity, got.Result, got.Err, before, after)
			case got.Result.Limited:
				limited++
			}
		}
	}
	if st := s.Stats(); limited < rounds/4 || st.Prefiltered < uint64(rounds)/16 {
		t.Errorf("%d were limited, %d of them unasked", limited, st.Prefiltered)
	}
}

func resultOf(t *testing.T, q *store.Request, s limiter.State, nowNs int64) funnel.Result {
	t.Helper()
	s = limiter.Shifted(s, 0)
	r, _, err := q.Rule.Decide(&s, nowNs, q.Quantity)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func stateOf(t *testing.T, client *redis.Client) (s limiter.State) {
	t.Helper()
	v, err := client.Get(t.Context(), "k").Result()
	if errors.Is(err, redis.Nil) {
		return s
	}
	if err == nil {
		s, err = script.ReadValue(v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// anything draws an operation on a funnel's key.
func anything(t *testing.T, random *rand.Rand, limits []funnel.Limit, id uint64) (
	name string, do func(nowNs int64, keys store.Keys) error,
) {
	t.Helper()
	l, quantity := limits[random.IntN(len(limits))], random.Int64N(8)-2
	key := named("k")
	operate := func(o limiter.Operation) func(int64, store.Keys) error {
		return func(nowNs int64, keys store.Keys) error {
			did := o
			if err := keys.Apply(nowNs, key, &did); !errors.Is(err, limiter.ErrWrongType) {
				return err
			}
			return nil
		}
	}
	verb := limiter.Verb(random.IntN(int(limiter.Look)) + 1)
	switch which := random.IntN(12); which {
	case 0:
		return "a deletion", func(nowNs int64, keys store.Keys) error {
			_, err := keys.Delete(nowNs, []store.Key{key})
			return err
		}
	case 1:
		return "a setting", func(nowNs int64, keys store.Keys) error {
			_, _, err := store.SetIf(keys, nowNs, key, limiter.State{ExpiresNs: nowNs + random.Int64N(900)*sec}, store.Always)
			return err
		}
	case 2:
		return "a reading", func(nowNs int64, keys store.Keys) error {
			_, _, err := keys.State(nowNs, key)
			return err
		}
	case 3, 4, 5:
		return fmt.Sprintf("%d units", quantity), func(nowNs int64, keys store.Keys) error {
			batch := []store.Request{ask("k", l, quantity)}
			if pending := keys.Throttle(nowNs, batch); pending != nil {
				batch = answersOf(pending)
			}
			return batch[0].Err
		}
	}
	switch verb {
	case limiter.Acquire, limiter.Add, limiter.Fill: // they create keys of other kinds
		verb = limiter.Wait
	case limiter.Commit:
		id -= random.Uint64N(8)
	default:
	}
	return fmt.Sprintf("operation %d of %d units", verb, quantity), operate(limiter.Operation{
		Verb: verb, Funnel: l, Quantity: quantity, ID: id, TTLNs: []int64{0, 900 * sec}[random.IntN(2)],
		DebitNs: uint64(random.Int64N(300 * sec)),
	})
}

package remote

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// exactAtMost has calls for at most two units of three.
func exactAtMost(t *testing.T, periodMs int64) []exactCase {
	t.Helper()
	var all []exactCase
	for _, c := range exactCases(t, periodMs) {
		if q, is := c.step(1).(*store.Request); is && q.Quantity == 1 {
			c.name += ", at most"
			c.step = func(i uint64) store.Step {
				return &store.Request{Rule: withAtMost(q.Rule), Quantity: 1 + int64(i%2)}
			}
			all = append(all, c)
		}
	}
	return all
}

func withAtMost(r limiter.Rule) limiter.Rule {
	r.Flags |= limiter.AtMost
	return r
}

// atMostRules are limits of 50 units, of which none comes back while a test runs.
func atMostRules(t *testing.T) map[string]limiter.Rule {
	t.Helper()
	const periodSec = 1000 * 3600
	all := map[string]limiter.Rule{}
	for kind := range limiter.Kinds {
		if r, err := limitertest.Rule(kind, 50, 50, periodSec); err == nil && kind != limiter.Value {
			all[kind.String()] = r
		}
	}
	all[limiter.Funnel.String()] = limiter.OfFunnel(mustLimit(t, 49, 1, periodSec))
	all[limiter.Named.String()] = limitertest.Named(
		limiter.PlainRule(mustLimit(t, 49, 1, periodSec), periodSec*sec), limiter.OtherRule(quotaOf(60, 10_000*time.Hour), "quota"))
	return all
}

// TestAtMostTogether: two stores over a server whose replies are late take all units together, none twice.
func TestAtMostTogether(t *testing.T) {
	p := redistest.Server(t)
	proxy := redistest.NewProxy(t, p.Addr)
	proxy.LateByTurns(exactLate)
	stores := []*Store{onPool(t, Config{}, "redis://"+proxy.Addr), onPool(t, Config{}, "redis://"+p.Addr)}
	seed := randtest.Seed(t, 49)
	for name, rule := range atMostRules(t) {
		k := store.Key{Name: []byte(name)}
		if rule.Kind == limiter.Bucket {
			if err := stores[0].Apply(stores[0].Now(), k, &limiter.Operation{Verb: limiter.Fill, Max: 50}); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		taken, clients := int64(0), sync.WaitGroup{}
		for i, s := range append(stores, stores...) {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				for {
					asked := 1 + r.Int64N(7)
					q := decide(s, s.Now(), store.Request{Key: k, Rule: withAtMost(rule), Quantity: asked})[0]
					if got := q.Taken(); q.Err != nil || got > asked || (got == 0) != q.Result.Limited {
						t.Errorf("%s: %d of at most %d: %+v", name, got, asked, q)
						return
					}
					mu.Lock()
					taken += q.Taken()
					mu.Unlock()
					if q.Result.Limited {
						return
					}
				}
			})
		}
		if clients.Wait(); taken != 50 {
			t.Errorf("%s: %d units were taken, want 50", name, taken)
		}
	}
}

// TestAtMostPrefiltered: what is known of a denied key denies no call that would find fewer units.
func TestAtMostPrefiltered(t *testing.T) {
	s, _ := onServer(t, Config{})
	rule := limiter.OfFunnel(mustLimit(t, 9, 1, 3600))
	one := func(r limiter.Rule, quantity int64) store.Request {
		return decide(s, s.Now(), store.Request{Key: named("k"), Rule: r, Quantity: quantity})[0]
	}
	one(rule, 7)
	if q := one(rule, 5); !q.Result.Limited {
		t.Fatalf("5 of 3: %+v", q)
	}
	if q := one(withAtMost(rule), 5); q.Taken() != 3 || q.Err != nil {
		t.Errorf("at most 5 of 3: %+v", q)
	}
	for range 1000 {
		q := one(withAtMost(rule), 5)
		if want := (funnel.Result{Limited: true, Limit: 10, RetryAfter: q.Result.RetryAfter, ResetAfter: q.Result.ResetAfter}); q.Result != want ||
			q.Taken() != 0 || q.Quantity != 1 || q.Result.RetryAfter < 3000 || q.Result.RetryAfter > 3600 {
			t.Fatalf("at most 5 of none: %+v", q)
		}
	}
	if st := s.Stats(); st.Prefiltered < 900 {
		t.Errorf("%d of 1000 denials were asked for", 1000-st.Prefiltered)
	}
}

// TestAtMostByPolicy: without a server as many units are taken as the policy leaves.
func TestAtMostByPolicy(t *testing.T) {
	for name, rule := range atMostRules(t) {
		for policy, want := range map[store.Fallback][2]int64{store.FallbackAllow: {50, 50}, store.FallbackDeny: {0, 0}, store.FallbackLocal: {25, 0}} {
			if rule.Kind == limiter.Bucket && policy == store.FallbackLocal {
				want[0] = 0 // nobody has filled it
			}
			s := opened(t, Config{OnError: policy, Local: shard.New(), LocalShare: 0.5})
			for _, want := range want {
				q := store.Request{Key: named("k"), Rule: withAtMost(rule), Quantity: 70}
				s.decideByPolicy(&q, &servers.Failed{Reason: servers.Timeout})
				if got := q.Taken(); got != want || q.Err != nil || q.Result.Limited != (want == 0) {
					t.Errorf("%s, %v: %d taken, want %d: %+v", name, policy, got, want, q)
				}
			}
		}
	}
}

// TestAtMostInTransactions: each step sees what the earlier ones have taken.
func TestAtMostInTransactions(t *testing.T) {
	s, _ := onServer(t, Config{})
	for name, rule := range atMostRules(t) {
		if rule.Kind == limiter.Bucket {
			continue
		}
		key := named(fmt.Sprint("in a transaction: ", name))
		for _, want := range []int64{0, 50} {
			tx, err := s.Begin(t.Context(), s.Now(), []store.Key{key})
			if err != nil {
				t.Fatal(err)
			}
			batch := []store.Request{{Key: key, Rule: withAtMost(rule), Quantity: 30}, {Key: key, Rule: withAtMost(rule), Quantity: 30}, {Key: key, Rule: withAtMost(rule), Quantity: 30}}
			tx.Throttle(s.Now(), batch)
			if got := []int64{batch[0].Taken(), batch[1].Taken(), batch[2].Taken()}; want == 0 && fmt.Sprint(got) != "[30 20 0]" || want > 0 && fmt.Sprint(got) != "[0 0 0]" {
				t.Errorf("%s: %v were taken", name, got)
			}
			if done, err := tx.Commit(t.Context()); !done || err != nil {
				t.Fatal(done, err)
			}
			if q := decide(s, s.Now(), store.Request{Key: key, Rule: rule})[0]; q.Result.Remaining != 0 {
				t.Errorf("%s: then %+v", name, q.Result)
			}
		}
	}
}

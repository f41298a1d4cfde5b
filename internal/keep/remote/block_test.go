package remote

import (
	"testing"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestDenialsHoldWithoutMemory: where the server has no memory for a block, the denial holds without,
// whatever a call gets that is not decided.
func TestDenialsHoldWithoutMemory(t *testing.T) {
	s, p := onServer(t, Config{OnError: store.FallbackAllow})
	rule := limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{
		limiter.PlainRule(mustLimit(t, 0, 1, 3600), 3600*sec).Blocking(7200*sec, true, "block"),
	}, 0))
	q := store.Request{Key: named("k"), Rule: rule, Quantity: 1}
	if got := decide(s, s.Now(), q)[0]; got.Result.Limited || got.Err != nil {
		t.Fatalf("%+v", got)
	}
	c := p.Client()
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	batch := decide(s, s.Now(), q, q, store.Request{Key: named("other"), Rule: rule, Quantity: 1}, q)
	for i := range batch {
		if got := batch[i].Result; got.Limited != (i != 2) || got.RetryAfter > 3600 || batch[i].Err != nil {
			t.Errorf("without memory, call %d: %+v", i, batch[i])
		}
	}
	if failed := s.Stats().Failed[servers.OutOfMemory]; failed != 1 {
		t.Errorf("%d calls failed, want that of another key", failed)
	}
	debit := q
	debit.Rule.Flags = limiter.Debit
	for what, more := range map[string][]store.Request{
		"denied": {q, q}, "charged": {{Key: named("other"), Rule: rule, Quantity: 1}, q}, "charged beyond": {debit, q},
	} {
		tx, err := s.Begin(t.Context(), s.Now(), []store.Key{q.Key, named("other")})
		if err != nil {
			t.Fatal(err)
		}
		tx.Throttle(s.Now(), more)
		if done, err := tx.Commit(t.Context()); done != (what == "denied") || done != (err == nil) || !more[1].Result.Limited {
			t.Errorf("a transaction that is %s without memory: %v, %v, %+v", what, done, err, more[1])
		}
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if got := decide(s, s.Now(), q)[0]; !got.Result.Limited || got.Result.RetryAfter <= 3600 {
		t.Errorf("with memory: %+v", got)
	}
}

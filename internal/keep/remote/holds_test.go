package remote

import (
	"reflect"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// TestEndedHoldsAreCounted by limit, once a swap has written the key without them.
func TestEndedHoldsAreCounted(t *testing.T) {
	s := openAt(t, "redis://"+redistest.Server(t).Addr, "holds%d:")
	w, err := limitertest.Rule(limiter.FixedWindow, 1000, 0, 3600)
	if err != nil {
		t.Fatal(err)
	}
	n := limiter.NewNamedLimit([]limiter.NamedRule{limiter.OtherRule(w, "window")}, 0)
	ask := func(nowNs int64, n *limiter.NamedLimit, key string, units int64) {
		t.Helper()
		if got := decide(s, nowNs, store.Request{Key: named(key), Rule: limiter.OfNamed(n), Quantity: units})[0]; got.Err != nil || got.Result.Limited {
			t.Fatalf("%s: %+v", key, got)
		}
	}
	want := func(want map[string]store.HoldStats) {
		t.Helper()
		var st store.Stats
		if s.UpdateStats(&st); !reflect.DeepEqual(st.Holds, want) {
			t.Errorf("got %+v, want %+v", st.Holds, want)
		}
	}
	for _, key := range []string{"swap:a", "tx:a", "tx:b"} {
		for id, charge := range []bool{false, true, true} {
			ask(t0, n.Holding(&limiter.Hold{ID: limiter.HoldID{byte(id)}, TTLNs: sec, Charge: charge}), key, 7)
		}
	}
	ask(t0, n, "swap:a", 1)
	want(nil)
	const over = t0 + 2*sec
	ask(over, n, "swap:a", 0) // which writes nothing
	want(nil)
	for range 2 {
		ask(over, n, "swap:a", 1)
		want(map[string]store.HoldStats{"swap": {Returned: 1, Charged: 2}})
	}
	request := func(key string) []store.Request {
		return []store.Request{{Key: named(key), Rule: limiter.OfNamed(n), Quantity: 1}}
	}
	tx, err := s.Begin(t.Context(), over, []store.Key{named("tx:a"), named("tx:b")})
	if err != nil {
		t.Fatal(err)
	}
	tx.Throttle(over, request("tx:a"))
	undo := tx.Save()
	tx.Throttle(over, request("tx:b"))
	undo()
	ask(t0, n, "tx:a", 1) // a conflict: the transaction writes nothing
	if done, err := tx.Commit(t.Context()); done || err != nil {
		t.Fatalf("committed: %t, %v", done, err)
	}
	want(map[string]store.HoldStats{"swap": {Returned: 1, Charged: 2}})
	tx, err = s.Begin(t.Context(), over, []store.Key{named("tx:a"), named("tx:b")})
	if err != nil {
		t.Fatal(err)
	}
	tx.Throttle(over, request("tx:a"))
	undo = tx.Save()
	tx.Throttle(over, request("tx:b"))
	undo()
	if done, err := tx.Commit(t.Context()); !done || err != nil {
		t.Fatalf("committed: %t, %v", done, err)
	}
	want(map[string]store.HoldStats{"swap": {Returned: 1, Charged: 2}, "tx": {Returned: 1, Charged: 2}})
}

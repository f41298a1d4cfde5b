package remote

import (
	"fmt"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// TestSpent: what this server has written is spent, and nothing that was undone or has met a conflict.
func TestSpent(t *testing.T) {
	s := openAt(t, "redis://"+redistest.Server(t).Addr, "spent%d:")
	s.SpendBy(func(limit []byte, atNs int64) (store.SpentAt, bool) {
		return store.SpentAt{Limit: string(limit), Day: int32((atNs - t0) / (10 * sec))}, true
	})
	w, err := limitertest.Rule(limiter.FixedWindow, 1000, 0, 3600)
	if err != nil {
		t.Fatal(err)
	}
	n := limiter.NewNamedLimit([]limiter.NamedRule{limiter.OtherRule(w, "window")}, 0)
	debit := limiter.OfNamed(n)
	debit.Flags = limiter.Debit
	ask := func(nowNs int64, rule limiter.Rule, key string, units int64) {
		t.Helper()
		if got := decide(s, nowNs, store.Request{Key: named(key), Rule: rule, Quantity: units})[0]; got.Err != nil || got.Result.Limited {
			t.Fatalf("%s: %+v", key, got)
		}
	}
	want := func(after, want string) {
		t.Helper()
		if got := fmt.Sprint(s.Spent("").Sorted()); got != want {
			t.Errorf("after %s: spent %s, want %s", after, got, want)
		}
	}
	hold := func(id byte) limiter.Rule {
		return limiter.OfNamed(n.Holding(&limiter.Hold{ID: limiter.HoldID{id}, TTLNs: 5 * sec}))
	}
	want("nothing", "[]")
	ask(t0, hold(1), "org:a", 7)
	ask(t0, debit, "org:b", 2)
	ask(t0, limiter.OfNamed(n), "org:b", 3)
	want("a hold, a debit and a check", "[{{org 0} 9}]")
	ask(t0+11*sec, limiter.OfNamed(n), "org:a", 0) // which writes nothing
	want("a look", "[{{org 0} 9}]")
	ask(t0+11*sec, hold(2), "org:a", 5)
	want("another hold", "[{{org 0} 2} {{org 1} 5}]")
	begin := func() store.RemoteTransaction {
		t.Helper()
		tx, err := s.Begin(t.Context(), t0+12*sec, []store.Key{named("org:a"), named("org:b")})
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	settle := func(tx store.RemoteTransaction, used int64) {
		t.Helper()
		step := limiter.Settle{Rule: limiter.OfNamed(n), ID: limiter.HoldID{2}, Used: used}
		if err := tx.Apply(t0+12*sec, named("org:a"), &step); err != nil || step.State != limiter.OpenHold {
			t.Fatalf("%+v, %v", step, err)
		}
	}
	spend := func(tx store.RemoteTransaction) {
		tx.Throttle(t0+12*sec, []store.Request{{Key: named("org:b"), Rule: debit, Quantity: 4}})
	}
	tx := begin()
	settle(tx, 1)
	ask(t0, limiter.OfNamed(n), "org:a", 1) // a conflict
	if done, err := tx.Commit(t.Context()); done || err != nil {
		t.Fatalf("committed: %t, %v", done, err)
	}
	spend(begin()) // which is not committed
	want("a conflict", "[{{org 0} 2} {{org 1} 5}]")
	spend(tx) // it has begun anew
	undo := tx.Save()
	settle(tx, 1)
	spend(tx)
	undo()
	settle(tx, 6)
	if done, err := tx.Commit(t.Context()); !done || err != nil {
		t.Fatalf("committed: %t, %v", done, err)
	}
	want("a commit", "[{{org 0} 2} {{org 1} 10}]")
}

package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func begun(t *testing.T, s *Store, keys ...store.Key) store.RemoteTransaction {
	t.Helper()
	tx, err := s.Begin(t.Context(), t0, keys)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func committed(t *testing.T, tx store.RemoteTransaction) {
	t.Helper()
	if done, err := tx.Commit(t.Context()); !done || err != nil {
		t.Fatalf("it was committed: %v, %v", done, err)
	}
}

// TestTransactionOfManyKeys has more keys and arguments than Lua's stack.
func TestTransactionOfManyKeys(t *testing.T) {
	s, p := onServer(t, Config{KeyPrefix: "p:"})
	const n = 20_000
	keys, l := make([]store.Key, n), mustLimit(t, 9, 1, 3600)
	for i := range keys {
		keys[i] = named(strconv.Itoa(i))
	}
	for round := int64(1); round <= 2; round++ {
		tx := begun(t, s, keys...)
		for i := range keys {
			q := []store.Request{{Key: keys[i], Rule: limiter.OfFunnel(l), Quantity: 1}}
			if tx.Throttle(t0, q); q[0].Err != nil || q[0].Result.Remaining != 10-round {
				t.Fatalf("round %d, key %d: %+v, %v", round, i, q[0].Result, q[0].Err)
			}
		}
		committed(t, tx)
	}
	if got := p.Client().DBSize(t.Context()).Val(); got != n {
		t.Fatalf("%d keys", got)
	}
	e, ok, err := s.Entry(t0, keys[n-1])
	if !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	wantAbout(t, "a key's expiry", e.ExpiresNs, t0+7200*sec)
}

// TestTransactionIsTwoCalls, or one if it only reads, for any number of requests.
func TestTransactionIsTwoCalls(t *testing.T) {
	var s *Store
	f := &fake{send: func(_ context.Context, _ *servers.Server, calls []*servers.Call) {
		for _, c := range calls {
			reply := []any{strconv.FormatInt(t0, 10)}
			if c.Script == s.scripts.Read {
				reply = append(reply, make([]any, len(c.Keys))...)
			}
			c.Reply = reply
		}
	}}
	s = opened(t, Config{Pool: f})
	for want, quantity := range []int64{0, 1} {
		before := len(f.pipelines())
		tx := begun(t, s, named("a"), named("b"))
		for range 100 {
			tx.Throttle(t0, []store.Request{ask("a", mustLimit(t, 99, 1, 60), quantity), ask("b", mustLimit(t, 99, 1, 60), quantity)})
		}
		committed(t, tx)
		if calls := len(f.pipelines()) - before; calls != 1+want {
			t.Errorf("%d calls, want %d", calls, 1+want)
		}
	}
}

// TestTooLargeTransaction: a step's size is bounded, and refused before anything is written.
func TestTooLargeTransaction(t *testing.T) {
	s, _ := onServer(t, Config{})
	large := limiter.State{Kind: limiter.Concurrency}
	for id := range uint64(4096) {
		o := limiter.Operation{Verb: limiter.Acquire, Max: 4096, ID: id, TTLNs: 3600 * sec}
		if _, err := o.Do(&large, t0); err != nil {
			t.Fatal(err)
		}
	}
	keys := make([]store.Key, script.MaxStepBytes/len(large.Payload)+2)
	for i := range keys {
		keys[i] = named(strconv.Itoa(i))
	}
	tx := begun(t, s, keys...)
	for i := range keys {
		_, _, err := store.SetIf(tx, t0, keys[i], large, store.Always)
		if full := i >= script.MaxStepBytes/len(large.Payload); full != errors.Is(err, store.ErrTooLarge) {
			t.Fatalf("state %d of %d bytes: %v", i, len(large.Payload), err)
		}
	}
	committed(t, tx)
	if _, _, err := store.SetIf(s, t0, keys[len(keys)-2], large, store.Always); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), t0, keys); !errors.Is(err, errTooLarge) {
		t.Fatalf("it was read: %v", err)
	}
}

// TestTransactionOnForeignKeys leaves them, and changes the others.
func TestTransactionOnForeignKeys(t *testing.T) {
	s, p := onServer(t, Config{})
	ctx, c := t.Context(), p.Client()
	c.HSet(ctx, "hash", "a", "b")
	tx := begun(t, s, named("hash"), named("k"))
	l := mustLimit(t, 9, 1, 60)
	batch := []store.Request{ask("hash", l, 1), ask("k", l, 1)}
	tx.Throttle(t0, batch)
	_, _, entryErr := tx.Entry(t0, named("hash"))
	_, deleteErr := tx.Delete(t0, []store.Key{named("k"), named("hash")})
	_, _, setErr := store.SetIf(tx, t0, named("hash"), limiter.State{ExpiresNs: t0 + sec}, store.Always)
	for i, err := range []error{batch[0].Err, entryErr, deleteErr, setErr} {
		if !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	committed(t, tx)
	if batch[1].Err != nil || c.HGet(ctx, "hash", "a").Val() != "b" || c.Exists(ctx, "k").Val() != 1 {
		t.Error("the wrong key was changed")
	}
}

// TestCommitThatIsNotAnswered: the error says that the outcome is unknown; it is not sent again.
func TestCommitThatIsNotAnswered(t *testing.T) {
	s, p := onServer(t, Config{})
	tx := begun(t, s, named("k"))
	tx.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
	p.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	done, err := tx.Commit(ctx)
	p.Continue()
	var f store.Failure
	if done || !errors.As(err, &f) {
		t.Fatalf("%v, %v", done, err)
	}
	if again, err := tx.Commit(t.Context()); again || err != nil {
		t.Fatalf("it was committed twice: %v, %v", again, err)
	}
	var counted store.Stats
	if s.UpdateStats(&counted); counted.Allowed != 0 {
		t.Errorf("%d were counted as allowed", counted.Allowed)
	}
}

// TestTransactionUndoes: the parts of a transaction that were undone are neither written nor counted, also
// where they repeat requests that stay.
func TestTransactionUndoes(t *testing.T) {
	s, _ := onServer(t, Config{})
	l := mustLimit(t, 99, 1, 60)
	tx := begun(t, s, named("a"), named("b")).(*tx)
	take := func(key string, units int64) {
		t.Helper()
		q := []store.Request{ask(key, l, units)}
		if tx.Throttle(t0, q); q[0].Err != nil {
			t.Fatalf("%s: %v", key, q[0].Err)
		}
	}
	undone := func(do func()) {
		undo := tx.Save()
		do()
		undo()
	}
	undone(func() { take("b", 5) })
	take("a", 1)
	for range 3 {
		undone(func() {
			take("a", 1)
			take("b", 1)
			undone(func() { take("a", 2) })
			take("a", 1)
			if _, err := tx.Delete(t0, []store.Key{named("a")}); err != nil {
				t.Fatal(err)
			}
		})
	}
	take("a", 1)
	take("a", 200)
	if was := &tx.states[0]; len(was.steps) != 1 || was.times != 2 {
		t.Errorf("it takes %d steps again, the last %d times", len(was.steps), was.times)
	}
	committed(t, tx)
	for key, units := range map[string]int64{"a": 2, "b": 0} {
		if q := decide(s, t0, ask(key, l, 0))[0]; q.Err != nil || q.Result.Remaining != 100-units {
			t.Errorf("%s: %+v, %v, want %d units taken", key, q.Result, q.Err, units)
		}
	}
	var counted store.Stats
	if s.UpdateStats(&counted); counted.Allowed != 4 || counted.Limited != 1 || counted.Granted != 2 {
		t.Errorf("counted %d as allowed, %d as limited, and %d units", counted.Allowed, counted.Limited, counted.Granted)
	}
}

// TestTransactionAfterConflict: the reply to a swap that is too late, or for other values, is what it is
// decided on anew, by one call.
func TestTransactionAfterConflict(t *testing.T) {
	s, p := onServer(t, Config{Timeout: patient})
	var scripts []*servers.Script
	s.noteTo(func(calls []*servers.Call) {
		for _, c := range calls {
			scripts = append(scripts, c.Script)
		}
	})
	l := mustLimit(t, 99, 1, 3600)
	other := onPool(t, Config{Timeout: patient}, "redis://"+p.Addr)
	tx := begun(t, s, named("a"), named("b"))
	for round := range int64(4) {
		batch := []store.Request{ask("a", l, 1), ask("b", l, 2)}
		tx.Throttle(0, batch)
		if left := batch[0].Result.Remaining; batch[0].Err != nil || left != 99-3*round || batch[1].Result.Remaining != 98 {
			t.Errorf("round %d: %+v", round, batch)
		}
		if round == 3 {
			break
		}
		if q := decide(other, other.Now(), ask("a", l, 3))[0]; q.Err != nil || q.Result.Limited {
			t.Fatalf("%+v", q)
		}
		before := tx.NowNs()
		if done, err := tx.Commit(t.Context()); done || err != nil {
			t.Fatalf("%t, %v", done, err)
		}
		if tx.NowNs() < before {
			t.Errorf("its time went from %d to %d", before, tx.NowNs())
		}
	}
	committed(t, tx)
	if want := []*servers.Script{s.scripts.Read, s.scripts.Swap, s.scripts.Swap, s.scripts.Swap, s.scripts.Swap}; !slices.Equal(scripts, want) {
		t.Errorf("it made %d calls, want a read and %d swaps", len(scripts), len(want)-1)
	}
	if q := decide(other, other.Now(), ask("a", l, 0))[0]; q.Result.Remaining != 90 {
		t.Errorf("%d units are left, want 90", q.Result.Remaining)
	}
}

package remote

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// scripted returns a store on a fake whose servers answer calls with the test's replies, in order.
func scripted(t *testing.T, replies ...func(c *servers.Call)) (s *Store, expect func(calls string)) {
	t.Helper()
	var mu sync.Mutex // guards all below
	var made []string
	s = opened(t, Config{Timeout: slow, Pool: &fake{send: func(_ context.Context, _ *servers.Server, all []*servers.Call) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			made = append(made, nameOf(s, c.Script))
			if len(made) > len(replies) {
				t.Errorf("an unexpected call: %v", made)
				c.Err = &servers.Failed{Reason: servers.Refused, Text: "unexpected"}
				continue
			}
			c.Reply, c.Err = nil, nil
			replies[len(made)-1](c)
		}
	}}})
	return s, func(calls string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(made, " "); got != calls {
			t.Errorf("the calls were %s, want %s", got, calls)
		}
	}
}

func nameOf(s *Store, of *servers.Script) string {
	switch of {
	case s.scripts.Read:
		return "read"
	case s.scripts.Swap:
		return "swap"
	case s.scripts.Native:
		return "native"
	default:
		return "other"
	}
}

// reply answers with a time afterNs after t0 and the rest.
func reply(afterNs int64, rest ...any) func(c *servers.Call) {
	return func(c *servers.Call) { c.Reply = append([]any{strconv.FormatInt(t0+afterNs, 10)}, rest...) }
}

func failing(f servers.Failed) func(c *servers.Call) {
	return func(c *servers.Call) { c.Err = &f }
}

func holding(t *testing.T, ids ...uint64) string {
	t.Helper()
	var s limiter.State
	for _, id := range ids {
		o := acquire(id)
		if _, err := o.Do(&s, t0); err != nil {
			t.Fatal(err)
		}
	}
	return script.ValueOf(&s)
}

func acquire(id uint64) limiter.Operation {
	return limiter.Operation{Verb: limiter.Acquire, Max: 2, ID: id, TTLNs: 3600 * sec}
}

// TestConflictIsDecidedAgain on the value that the swap found, without another read, by the servers' time.
func TestConflictIsDecidedAgain(t *testing.T) {
	s, expect := scripted(t, reply(0, nil), reply(1, int64(1), holding(t, 1)), reply(2, int64(1), holding(t, 1, 2)))
	o := acquire(3)
	if err := s.Apply(t0, named("k"), &o); err != nil || !o.Result.Limited {
		t.Fatalf("%+v, %v", o.Result, err)
	}
	expect("read swap swap")
}

// TestKnownValueSavesTheRead: a recently seen value is tried first, and confirmed even if nothing changes.
func TestKnownValueSavesTheRead(t *testing.T) {
	synctest.Test(t, testKnownValue)
}

func testKnownValue(t *testing.T) {
	s, expect := scripted(t, reply(0, nil), reply(0), reply(1), reply(2), reply(3, int64(1), nil))
	for range 2 {
		o := acquire(1)
		if err := s.Apply(t0, named("k"), &o); err != nil || o.Result.Limited {
			t.Fatalf("%+v, %v", o.Result, err)
		}
		time.Sleep(time.Millisecond) // the lease is renewed
	}
	for _, want := range []int64{1, 0} { // finally another client has deleted it
		o := limiter.Operation{Verb: limiter.Holders}
		if err := s.Apply(t0, named("k"), &o); err != nil || o.Count != want {
			t.Fatalf("%d hold a place, %v, want %d", o.Count, err, want)
		}
	}
	expect("read swap swap swap swap")
}

// TestNotSentTwice: a swap with an unknown outcome fails, and says so. A read is repeated.
func TestNotSentTwice(t *testing.T) {
	lost := servers.Failed{Reason: servers.Network, Executed: servers.Maybe, Text: "gone"}
	for _, c := range []struct {
		replies []func(*servers.Call)
		calls   string
		want    string
	}{
		{[]func(*servers.Call){failing(lost)}, "read", "STOREDOWN gone; nothing was charged"},
		{[]func(*servers.Call){reply(0, nil), failing(lost)}, "read swap", "STOREDOWN gone; it may have been charged"},
	} {
		s, expect := scripted(t, c.replies...)
		o := acquire(1)
		var f store.Failure
		if err := s.Apply(t0, named("k"), &o); !errors.As(err, &f) || f.Line != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		expect(c.calls)
	}
}

// TestSwapSentAgain if certainly not executed.
func TestSwapSentAgain(t *testing.T) {
	s, expect := scripted(t, reply(0, nil), failing(servers.Failed{Reason: servers.Cluster, Text: "TRYAGAIN"}), reply(1))
	o := acquire(1)
	if err := s.Apply(t0, named("k"), &o); err != nil || o.Result.Limited {
		t.Fatalf("%+v, %v", o.Result, err)
	}
	expect("read swap swap")
	if resent := s.Stats().Resent; resent[servers.Cluster] != 1 {
		t.Errorf("sent again: %v", resent)
	}
}

// TestNotAnsweredByAnEarlierValue: a request that arrived after a read began is not answered by its value
// when the confirming call is sent again.
func TestNotAnsweredByAnEarlierValue(t *testing.T) {
	s, expect := scripted(t, reply(0, nil), reply(1), failing(servers.Failed{Reason: servers.Loading, Text: "LOADING"}), reply(2, int64(1), nil))
	o := acquire(1)
	if err := s.Apply(t0, named("k"), &o); err != nil || o.Result.Limited {
		t.Fatalf("%+v, %v", o.Result, err)
	}
	look := limiter.Operation{Verb: limiter.Holders} // another client has deleted the key
	if err := s.Apply(t0, named("k"), &look); err != nil || look.Count != 0 {
		t.Fatalf("%d hold a place, %v", look.Count, err)
	}
	expect("read swap swap swap")
}

// TestOneCallAKey: a key's requests and other steps keep their order, with one call at a time for all that
// arrived meanwhile.
func TestOneCallAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		s, expect := scripted(t, func(c *servers.Call) { <-goOn; c.Reply = answerAtT0 }, reply(1, nil), reply(2))
		l := mustLimit(t, 9, 1, 60)
		first := s.Throttle(t0, []store.Request{ask("k", l, 1)})
		synctest.Wait()
		var took []limiter.Operation
		var wg sync.WaitGroup
		step := func(quantity int64) {
			o := limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: quantity}
			wg.Go(func() {
				if err := s.Apply(t0, named("k"), &o); err != nil {
					t.Error(err)
				}
				took = append(took, o)
			})
			synctest.Wait()
		}
		step(2)
		second := s.Throttle(t0, []store.Request{ask("k", l, 3), ask("k", l, 0)})
		synctest.Wait()
		close(goOn)
		answersOf(first)
		wg.Wait()
		for _, q := range answersOf(second) { // after the 2, the fake's key is absent
			if q.Err != nil || q.Result.Remaining != 5 {
				t.Errorf("%+v, %v", q.Result, q.Err)
			}
		}
		if took[0].Result.Remaining != 8 {
			t.Errorf("%+v", took[0].Result)
		}
		expect("other read swap")
	})
}

// TestNativeGivesWay: a swap decides on values of another kind, or with large numbers.
func TestNativeGivesWay(t *testing.T) {
	s, expect := scripted(t, reply(0), reply(1, nil), reply(2), reply(3, nil))
	window := limiter.Rule{Kind: limiter.FixedWindow, Packed: mustWindow(t, 5, 60).Packed()}
	for range 2 {
		q := decide(s, t0, store.Request{Key: named("k"), Rule: window, Quantity: 2})[0]
		if q.Err != nil || q.Result.Remaining != 3 {
			t.Fatalf("%+v, %v", q.Result, q.Err)
		}
	}
	expect("native read swap native")
}

// TestOtherKindsByPolicy: at a hanging server the policy decides on other kinds, too, and nothing waits for
// it.
func TestOtherKindsByPolicy(t *testing.T) {
	p := redistest.Server(t)
	s := onPool(t, Config{Timeout: 30 * time.Millisecond, OnError: store.FallbackDeny}, "redis://"+p.Addr)
	p.Stop()
	defer p.Continue()
	for _, kind := range []limiter.Kind{limiter.FixedWindow, limiter.SlidingWindow} {
		q := decide(s, t0, store.Request{Key: named("k"), Rule: limiter.Rule{Kind: kind, Packed: mustWindow(t, 5, 60).Packed()}, Quantity: 1})[0]
		if q.Err != nil || !q.Result.Limited || q.Result.RetryAfter != 1 {
			t.Errorf("%v: %+v, %v", kind, q.Result, q.Err)
		}
	}
	o := acquire(1)
	var f store.Failure
	if err := s.Apply(t0, named("holders"), &o); !errors.As(err, &f) || !strings.HasPrefix(f.Line, "STOREDOWN ") {
		t.Errorf("an operation: %v", err)
	}
	s.Close()
	if n := s.engine.Keys(); n > 0 {
		t.Errorf("%d keys are still waited for", n)
	}
}

// TestOtherKindsWhileASlotMoves: nothing is lost or repeated while another kind's key moves to another
// server.
func TestOtherKindsWhileASlotMoves(t *testing.T) {
	c := redistest.Cluster(t)
	s := onPool(t, Config{}, c.URL())
	const each, callers = 150, 4
	one := store.Request{Key: named("{k}sliding"), Rule: limiter.Rule{Kind: limiter.SlidingWindow, Packed: mustWindow(t, 4000, 3600).Packed()}, Quantity: 1}
	count := store.Request{Key: named("{k}fixed"), Rule: limiter.Rule{Kind: limiter.FixedWindow, Packed: mustWindow(t, 4000, 3600).Packed()}, Quantity: 1}
	decide(s, t0, one, count)
	slot := int(s.Pool.Slot("{k}"))
	from, err := c.Master(t.Context(), "{k}")
	if err != nil {
		t.Fatal(err)
	}
	to := c.Masters[0]
	if to == from {
		to = c.Masters[1]
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				for _, q := range decide(s, t0, one, count) {
					if q.Err != nil || q.Result.Limited {
						t.Errorf("%s: %+v, %v", q.Key.Name, q.Result, q.Err)
					}
				}
			}
		})
	}
	if err := c.MigrateSlot(slot, from, to).Run(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	for _, q := range decide(s, t0, one, count) {
		if want := int64(4000 - callers*each - 2); q.Err != nil || q.Result.Remaining != want {
			t.Errorf("%s: %+v, %v, want %d remaining", q.Key.Name, q.Result, q.Err, want)
		}
	}
}

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

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// ofTwo puts keys that begin with h on a server that hangs, and all others on one that answers.
func ofTwo() *fake {
	f := &fake{clustered: true}
	f.of = func(key string) (*servers.Server, error) {
		if strings.HasPrefix(key, "h") {
			return f.At("hangs:1"), nil
		}
		return f.At("a:1"), nil
	}
	f.send = func(ctx context.Context, s *servers.Server, calls []*servers.Call) {
		if s.Addr == "hangs:1" {
			hangs(ctx, s, calls)
		}
	}
	return f
}

// TestBoundOfAServer: calls that wait for a hanging server leave space for other keys.
func TestBoundOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, Config{Pool: ofTwo(), OnError: store.FallbackAllow})
		l := mustLimit(t, 9, 1, 60)
		batch := make([]store.Request, engine.MaxWaiting)
		for i := range batch {
			batch[i] = ask("h", l, 1)
		}
		p := s.Throttle(t0, batch)
		if st := s.Stats(); st.Failed[servers.QueueFull] != engine.MaxWaiting/2 || st.Waiting != engine.MaxWaiting/2 || st.WaitingBytes != engine.MaxWaiting/2 {
			t.Errorf("%d refused, %d requests of %d bytes wait", st.Failed[servers.QueueFull], st.Waiting, st.WaitingBytes)
		}
		if q := decide(s, t0, ask("k", l, 1))[0]; q.Err != nil || q.Result.Remaining != 9 {
			t.Errorf("a key of another server: %+v, %v", q.Result, q.Err)
		}
		if st := s.Stats(); st.Policy[store.FallbackAllow].Allowed != engine.MaxWaiting/2 {
			t.Errorf("the policy has decided %+v", st.Policy[store.FallbackAllow])
		}
		answersOf(p)
		s.Close()
		if st := s.Stats(); st.Waiting != 0 || st.WaitingBytes != 0 {
			t.Errorf("%d requests of %d bytes still wait", st.Waiting, st.WaitingBytes)
		}
	})
}

// TestCanceledIsNotDecided: the policy never decides canceled requests.
func TestCanceledIsNotDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, Config{Pool: &fake{send: hangs}, OnError: store.FallbackDeny})
		s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)}).Cancel()
		time.Sleep(time.Second)
		if st := s.Stats(); st.Policy[store.FallbackDeny] != (store.Decided{}) || st.Waiting != 0 {
			t.Errorf("got %+v", st)
		}
	})
}

// TestWaitOfOtherCalls: all writes wait for replicas, and reads do not.
func TestWaitOfOtherCalls(t *testing.T) {
	f := &fake{send: func(_ context.Context, _ *servers.Server, calls []*servers.Call) {
		for _, c := range calls {
			c.Reply = []any{"1700000000000000000", nil}
		}
	}}
	s := opened(t, Config{Pool: f, Wait: 2})
	if _, err := s.Delete(t0, []store.Key{named("k")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.State(t0, named("k")); err != nil {
		t.Fatal(err)
	}
	if f.waits[0] != 2 || f.waits[1] != 0 {
		t.Errorf("they wait for %v replicas", f.waits)
	}
}

// TestDecideByPolicy: requests of a transaction are decided as others, and counted by outcome.
func TestDecideByPolicy(t *testing.T) {
	l := mustLimit(t, 9, 1, 60)
	failure := store.Failure{Line: "STOREDOWN away"}
	for _, tt := range []struct {
		policy store.Fallback
		stands bool
		want   funnel.Result
		counts store.Decided
	}{
		{store.FallbackError, false, funnel.Result{}, store.Decided{}},
		{store.FallbackAllow, true, funnel.Result{Limit: 10, Remaining: 7, RetryAfter: -1, ResetAfter: 180}, store.Decided{Allowed: 1, Failed: 0}},
		{store.FallbackDeny, true, funnel.Result{Limited: true, Limit: 10, RetryAfter: 1, ResetAfter: 1}, store.Decided{Limited: 1}},
	} {
		s := opened(t, Config{Pool: &fake{}, OnError: tt.policy})
		if got := s.DecideByPolicy(nil, failure); got != tt.stands {
			t.Errorf("%v: it decides: %v", tt.policy, got)
		}
		batch := []store.Request{ask("k", l, 3), ask("fast", mustLimit(t, 9, 2_000_000, 1), 1)}
		if !s.DecideByPolicy(batch, failure) {
			continue
		}
		if batch[0].Result != tt.want || batch[0].Err != nil || !errors.Is(batch[1].Err, errTooFast) {
			t.Errorf("%v: got %+v, and %v", tt.policy, batch[0], batch[1].Err)
		}
		if got := s.Stats().Policy[tt.policy]; got != tt.counts {
			t.Errorf("%v: counted %+v", tt.policy, got)
		}
	}
}

// TestForeignValues: text that is not a TAT stays, whatever the operation.
func TestForeignValues(t *testing.T) {
	s, p := onServer(t, Config{})
	l := mustLimit(t, 4, 1, 10)
	for _, text := range []string{"9223372036854775808", "9999999999999999999", "007", "00", "-5", "+5", "99999999999999999999",
		"", "1e18", "0x10", " 17", "17 ", "1.5", "nan", "text"} {
		p.Client().Set(t.Context(), "k", text, 0)
		for _, quantity := range []int64{1, 0, -3} {
			if q := decide(s, t0, ask("k", l, quantity))[0]; !errors.Is(q.Err, limiter.ErrWrongType) {
				t.Errorf("%s, quantity %d: %+v, %v", text, quantity, q.Result, q.Err)
			}
		}
		if n, err := s.Delete(t0, []store.Key{named("k")}); n != 0 || !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("%s: %d deleted, %v", text, n, err)
		}
		if got := p.Client().Get(t.Context(), "k").Val(); got != text {
			t.Errorf("%s has become %q", text, got)
		}
	}
	const last = "9223372036854775807"
	p.Client().Set(t.Context(), "k", last, 0)
	if q := decide(s, t0, ask("k", l, 1))[0]; !q.Result.Limited || q.Err != nil {
		t.Errorf("the last time there is: %+v, %v", q.Result, q.Err)
	}
	if n, err := s.Delete(t0, []store.Key{named("k")}); n != 1 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestManyKeysOfAServerThatLoads: calls that are sent again take no goroutine a key.
func TestManyKeysOfAServerThatLoads(t *testing.T) {
	for _, failed := range []servers.Failed{
		{Reason: servers.Loading, Text: "LOADING"},
		{Reason: servers.Cluster, Text: "MOVED 1 b:1", Redirect: &servers.Redirect{Addr: "b:1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			most, now := 0, 0
			f := &fake{}
			f.send = func(ctx context.Context, s *servers.Server, calls []*servers.Call) {
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					now += n
					most = max(most, now)
				}
				count(1)
				defer count(-1)
				time.Sleep(time.Millisecond)
				fails(failed)(ctx, s, calls)
			}
			s := opened(t, Config{Pool: f})
			var all []store.Pending
			rule := limiter.Rule{Kind: limiter.FixedWindow, Packed: mustWindow(t, 10, 60).Packed()}
			for i := range 3000 {
				all = append(all, s.Throttle(t0, []store.Request{{Key: named(strconv.Itoa(i)), Rule: rule, Quantity: 1}}))
			}
			for _, p := range all {
				if q := answersOf(p)[0]; q.Err == nil || !strings.HasPrefix(q.Err.Error(), "STOREDOWN ") {
					t.Fatalf("got %+v, %v", q.Result, q.Err)
				}
			}
			s.Close()
			if most > 2*engine.MaxPipelines {
				t.Errorf("%d calls were under way at once", most)
			}
		})
	}
}

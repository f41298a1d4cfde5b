package remote

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// TestHangingServer: the policy decides requests at a hanging server after the timeout, and nothing is left
// of them.
func TestHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{send: hangs}
		s := opened(t, Config{Pool: f, Timeout: 50 * time.Millisecond, OnError: store.FallbackDeny})
		begin := time.Now()
		var all []store.Pending
		for i := range 3000 {
			all = append(all, s.Throttle(t0, []store.Request{ask(strings.Repeat("k", 1+i%700), mustLimit(t, 9, 1, 60), 1)}))
		}
		for _, p := range all {
			q := answersOf(p)[0]
			if want := (funnel.Result{Limited: true, Limit: 10, RetryAfter: 1, ResetAfter: 1}); q.Result != want || q.Err != nil {
				t.Fatalf("got %+v", q)
			}
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		s.Close()
		synctest.Wait()
		st := s.Stats()
		if st.Policy[store.FallbackDeny].Limited != 3000 || st.Failed[servers.Timeout] != 3000 || st.Waiting != 0 || st.WaitingBytes != 0 || st.Servers[0].InFlight != 0 {
			t.Errorf("got %+v", st)
		}
		if n := len(f.pipelines()); n > 2*engine.MaxPipelines {
			t.Errorf("%d pipelines were sent to a server that hangs", n)
		}
	})
}

// TestDeadlineIsEachBatchs: a later batch is answered later at the same server.
func TestDeadlineIsEachBatchs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, Config{Pool: &fake{send: hangs}, Timeout: 50 * time.Millisecond})
		begin := time.Now()
		first := s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
		time.Sleep(20 * time.Millisecond)
		second := s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
		q := answersOf(first)[0]
		if want := "STOREDOWN no answer from a:1 within 50ms; it may have been charged"; q.Err == nil || q.Err.Error() != want {
			t.Errorf("got %v, want %s", q.Err, want)
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("the first took %v", took)
		}
		q = answersOf(second)[0]
		if took := time.Since(begin); took != 70*time.Millisecond || q.Err == nil {
			t.Errorf("the second took %v: %v", took, q.Err)
		}
	})
}

// TestCanceled requests are not sent.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		f := &fake{}
		s := opened(t, Config{Pool: f})
		f.send = func(_ ctxType, _ *servers.Server, _ []*servers.Call) { <-goOn }
		first := s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
		synctest.Wait()
		s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)}).Cancel()
		last := s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
		close(goOn)
		answersOf(first)
		answersOf(last)
		synctest.Wait()
		if st := s.Stats(); st.Asked != 2 || st.Waiting != 0 {
			t.Errorf("got %+v", st)
		}
	})
}

// TestBounds: above the bound on waiting requests the policy decides at once.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, Config{Pool: &fake{send: hangs}, OnError: store.FallbackAllow})
		batch := make([]store.Request, engine.MaxWaiting)
		for i := range batch {
			batch[i] = ask("k", mustLimit(t, 9, 1, 60), 1)
		}
		if s.Throttle(t0, batch) == nil {
			t.Fatal("it was answered at once")
		}
		for range 100 {
			one := []store.Request{ask(strings.Repeat("k", 1000), mustLimit(t, 9, 1, 60), 3)}
			if s.Throttle(t0, one) != nil || one[0].Result != (funnel.Result{Limit: 10, Remaining: 7, RetryAfter: -1, ResetAfter: 180}) {
				t.Errorf("one too many: %+v", one[0])
			}
		}
		if st := s.Stats(); st.Failed[servers.QueueFull] != 100 || st.Policy[store.FallbackAllow].Allowed != 100 ||
			st.Waiting != engine.MaxWaiting || st.WaitingBytes != engine.MaxWaiting {
			t.Errorf("got %+v", st)
		}
	})
}

// TestClose answers waiting and later requests.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, Config{Pool: &fake{send: hangs}})
		p := s.Throttle(t0, []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)})
		s.Close()
		if q := answersOf(p)[0]; q.Err == nil {
			t.Errorf("got %+v", q)
		}
		q := []store.Request{ask("k", mustLimit(t, 9, 1, 60), 1)}
		if s.Throttle(t0, q) != nil || q[0].Err == nil || q[0].Err.Error() != "STOREDOWN the store is closed; nothing was charged" {
			t.Errorf("got %+v", q[0])
		}
		failed := s.Stats().Failed[servers.QueueFull]
		err := s.Apply(t0, named("k"), &limiter.Operation{Verb: limiter.Fill, Max: 1})
		if err == nil || err.Error() != "STOREDOWN the store is closed; nothing was charged" {
			t.Errorf("an operation: %v", err)
		}
		if n := s.Stats().Failed[servers.QueueFull] - failed; n != 1 {
			t.Errorf("%d failures are counted for an operation", n)
		}
	})
}

// TestSentAgain: only calls certainly not executed are sent again, until the timeout.
func TestSentAgain(t *testing.T) {
	for _, tt := range []struct {
		failed servers.Failed
		again  bool
		err    string
	}{
		{servers.Failed{Reason: servers.Loading, Text: "LOADING"}, true, "STOREDOWN LOADING; nothing was charged"},
		{servers.Failed{Reason: servers.Cluster, Text: "TRYAGAIN"}, true, "STOREDOWN TRYAGAIN; nothing was charged"},
		{servers.Failed{Reason: servers.ReadOnly, Text: "READONLY"}, true, "STOREDOWN READONLY; nothing was charged"},
		{servers.Failed{Reason: servers.Network, Text: "refused"}, true, "STOREDOWN refused; nothing was charged"},
		{servers.Failed{Reason: servers.Network, Executed: servers.Maybe, Text: "EOF"}, false, "STOREDOWN EOF; it may have been charged"},
		{servers.Failed{Reason: servers.OutOfMemory, Text: "OOM"}, false, "STOREDOWN OOM; nothing was charged"},
		{servers.Failed{Reason: servers.CircuitOpen, Text: "open"}, false, "STOREDOWN open; nothing was charged"},
		{servers.Failed{Reason: servers.WrongType, Text: "WRONGTYPE"}, false, limiter.ErrWrongType.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{send: fails(tt.failed)}
			s := opened(t, Config{Pool: f, Timeout: time.Second})
			begin := time.Now()
			q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 1))[0]
			if q.Err == nil || q.Err.Error() != tt.err || (time.Since(begin) == time.Second) != tt.again {
				t.Errorf("%v: after %v: %v", tt.failed, time.Since(begin), q.Err)
			}
			synctest.Wait()
			if n := len(f.pipelines()); (n > 10) != tt.again || n > 50 {
				t.Errorf("%v: sent %d times", tt.failed, n)
			}
			if n := s.Stats().Resent[tt.failed.Reason]; (n > 10) != tt.again {
				t.Errorf("%v: counted %d times", tt.failed, n)
			}
		})
	}
}

// TestComesBack: requests sent again are decided as soon as the server can.
func TestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		back := time.Now().Add(100 * time.Millisecond)
		f.send = func(ctx ctxType, s *servers.Server, calls []*servers.Call) {
			if time.Now().Before(back) {
				fails(servers.Failed{Reason: servers.Loading, Text: "LOADING"})(ctx, s, calls)
			}
		}
		s := opened(t, Config{Pool: f, Timeout: time.Second})
		for _, q := range decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 1), ask("k", mustLimit(t, 9, 1, 60), 2), ask("l", mustLimit(t, 9, 1, 60), 3)) {
			if q.Err != nil || q.Result.Limited {
				t.Errorf("got %+v", q)
			}
		}
		if late := time.Since(back); late < 0 || late > 100*time.Millisecond {
			t.Errorf("%v too late", late)
		}
	})
}

// TestRedirects are followed at once, with ASKING if required.
func TestRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.send = func(_ ctxType, s *servers.Server, calls []*servers.Call) {
			for _, c := range calls {
				switch {
				case s.Addr == "a:1" && !c.Asking:
					c.Err = &servers.Failed{Reason: servers.Cluster, Text: "MOVED", Redirect: &servers.Redirect{Addr: "b:2"}}
				case s.Addr == "b:2" && !c.Asking:
					c.Err = &servers.Failed{Reason: servers.Cluster, Text: "ASK", Redirect: &servers.Redirect{Addr: "c:3", Asking: true}}
				case s.Addr != "c:3":
					t.Errorf("asking %s", s.Addr)
				}
			}
		}
		s := opened(t, Config{Pool: f, Timeout: time.Second})
		begin := time.Now()
		if q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 4))[0]; q.Err != nil || q.Result.Remaining != 6 || time.Since(begin) != 0 {
			t.Errorf("after %v: %+v", time.Since(begin), q)
		}
		if n := s.Stats().Resent[servers.Cluster]; n != 2 {
			t.Errorf("sent again %d times", n)
		}
	})
}

// TestUnknownServer: a request waits until its key's server is known.
func TestUnknownServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		since := time.Now()
		f.of = func(string) (*servers.Server, error) {
			if time.Since(since) < 20*time.Millisecond {
				return nil, &servers.Failed{Reason: servers.Cluster, Text: "the slots are not known yet"}
			}
			return f.At("a:1"), nil
		}
		s := opened(t, Config{Pool: f, Timeout: time.Second})
		if q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 1))[0]; q.Err != nil {
			t.Errorf("got %+v", q)
		}
		since = time.Now().Add(time.Hour)
		begin := time.Now()
		q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 1))[0]
		if q.Err == nil || !strings.HasPrefix(q.Err.Error(), "STOREDOWN the slots") || time.Since(begin) != time.Second {
			t.Errorf("after %v: %+v", time.Since(begin), q)
		}
	})
}

// TestPolicies: each policy's decision without a server.
func TestPolicies(t *testing.T) {
	windows, _ := window.NewLimit(funnel.Seconds, 100, 60)
	named := limitertest.Named(limiter.PlainRule(mustLimit(t, 99, 1, 60), 60*sec))
	for _, rule := range []limiter.Rule{
		limiter.OfFunnel(mustLimit(t, 99, 1, 60)),
		{Kind: limiter.FixedWindow, Packed: windows.Packed()},
		{Kind: limiter.SlidingWindow, Packed: windows.Packed()},
		{Kind: limiter.ApproxWindow, Packed: windows.Packed()},
		{Kind: limiter.Bucket, Packed: limiter.Packed{100}},
		named,
	} {
		for _, tt := range []struct {
			policy    store.Fallback
			limited   bool
			remaining int64
		}{{store.FallbackAllow, false, 70}, {store.FallbackDeny, true, 0}, {store.FallbackLocal, rule.Kind == limiter.Bucket, 20}} {
			s := opened(t, Config{OnError: tt.policy, Local: shard.New(), LocalShare: 0.5})
			q := store.Request{Key: store.Key{Name: []byte("k")}, Rule: rule, Quantity: 30}
			s.decideByPolicy(&q, &servers.Failed{Reason: servers.Timeout})
			if tt.limited && tt.policy == store.FallbackLocal {
				tt.remaining = 0 // nobody has filled it
			}
			if q.Err != nil || q.Result.Limited != tt.limited || q.Result.Remaining != tt.remaining {
				t.Errorf("%v: %v: got %+v, %v", rule.Kind, tt.policy, q.Result, q.Err)
			}
			q.Quantity = 101
			if s.decideByPolicy(&q, &servers.Failed{Reason: servers.Timeout}); q.Err != nil || !q.Result.Limited {
				t.Errorf("%v: %v: more than it holds: %+v, %v", rule.Kind, tt.policy, q.Result, q.Err)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []Config{
		{OnError: store.Fallbacks},
		{OnError: store.FallbackLocal, LocalShare: 1},
		{OnError: store.FallbackLocal, Local: shard.New()},
		{OnError: store.FallbackLocal, Local: shard.New(), LocalShare: 1.1},
	} {
		if _, err := Open(c); err == nil {
			t.Errorf("%+v is no error", c)
		}
	}
	if p, ok := store.FallbackOf("local"); p != store.FallbackLocal || !ok {
		t.Errorf("got %v, %v", p, ok)
	}
	if _, ok := store.FallbackOf("none"); ok {
		t.Error("there is a policy none")
	}
}

// TestTooFast: intervals below the servers' resolution are an error under every policy.
func TestTooFast(t *testing.T) {
	s := opened(t, Config{Pool: &fake{}, OnError: store.FallbackAllow})
	q := []store.Request{ask("k", mustLimit(t, 9, 1_000_001, 1), 1)}
	if s.Throttle(t0, q) != nil || !errors.Is(q[0].Err, errTooFast) {
		t.Errorf("got %+v", q[0])
	}
	if q := decide(s, t0, ask("k", mustLimit(t, 9, 1_000_000, 1), 1))[0]; q.Err != nil {
		t.Errorf("got %+v", q)
	}
}

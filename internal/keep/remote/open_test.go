package remote

import (
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

// slow is a timeout that no answer reaches.
const slow = time.Minute

// onServer returns a store on its own redis-server; its default timeout is slow.
func onServer(t *testing.T, c Config) (*Store, *redistest.Process) {
	t.Helper()
	p := redistest.Server(t)
	return onPool(t, c, "redis://"+p.Addr), p
}

func onPool(t *testing.T, c Config, url string) *Store {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = slow
	}
	pool, err := servers.Open(servers.Config{URL: url, Timeout: c.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	c.Pool = pool
	return opened(t, c)
}

// opened returns a store that closes with the test.
func opened(t *testing.T, c Config) *Store {
	t.Helper()
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// decide returns a batch's answers.
func decide(s *Store, nowNs int64, batch ...store.Request) []store.Request {
	p := s.Throttle(nowNs, batch)
	if p == nil {
		return batch
	}
	return answersOf(p)
}

func answersOf(p store.Pending) []store.Request {
	done := make(chan struct{})
	p.Notify(func() { close(done) })
	<-done
	answered, _ := p.Answers()
	return answered
}

func mustLimit(t testing.TB, maxBurst, count, periodSec int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Burst, maxBurst, count, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func ask(name string, l funnel.Limit, quantity int64) store.Request {
	return store.Request{Key: store.Key{Name: []byte(name)}, Rule: limiter.OfFunnel(l), Quantity: quantity}
}

// someStates returns a state of each kind that an operation makes, at t0.
func someStates(t testing.TB) []limiter.State {
	t.Helper()
	states := make([]limiter.State, 0, limiter.Kinds)
	for kind := range limiter.Kinds {
		c, err := limitertest.Maker(kind)
		if err != nil {
			t.Fatal(err)
		}
		var s limiter.State
		var changed bool
		if c.Operation != nil {
			changed, err = c.Operation.Do(&s, t0)
		} else {
			_, changed, err = c.Rule.Decide(&s, t0, c.Quantity)
		}
		if !changed || err != nil || s.Kind != kind {
			t.Fatalf("kind %v: %v, %v", kind, changed, err)
		}
		states = append(states, s)
	}
	return states
}

func mustWindow(t testing.TB, maxCount, periodSec int64) window.Limit {
	t.Helper()
	l, err := window.NewExactLimit(funnel.Seconds, maxCount, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

package cellserver_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

// kept starts a server whose answers no kill loses, on an address that a second one can have.
func kept(t *testing.T) (s *servertest.Server, restart func() *servertest.Server) {
	t.Helper()
	args := []string{
		"--addr=" + servertest.FreeAddr(t), "--data-dir=" + filepath.Join(t.TempDir(), "data"), "--fsync-interval=0",
	}
	return budgets(t, args...), func() *servertest.Server { return servertest.Start(t, binary, args...) }
}

// drain waits until no settlement waits.
func drain(t *testing.T, l *cellserver.Limiter) {
	t.Helper()
	check(t, l.Close(t.Context()))
	if got := l.Settlements(); got.Waiting > 0 || got.GivenUp > 0 {
		t.Errorf("%+v", got)
	}
}

func TestSettledAfterAKill(t *testing.T) {
	s, restart := kept(t)
	l := patient(t, s.Addr, cellserver.Closed)
	h := holdFor(t, l, long/2, use("org", "acme", 40), use("user", "ann", 20))
	other := holdFor(t, l, long/2, use("user", "ann", 20))
	s.Stop()
	check(t, h.Settle(t.Context(), 10))
	check(t, other.Cancel(t.Context()))
	if got := l.Settlements(); got.Waiting != 2 {
		t.Errorf("%+v", got)
	}
	if _, err := l.Hold(t.Context(), time.Minute, use("org", "acme", 1)); err == nil {
		t.Error("held without a server")
	}
	s = restart()
	drain(t, l)
	if org, user := left(t, s, "org", "acme"), left(t, s, "user", "ann"); org != 990 || user != 90 {
		t.Errorf("%d and %d are left", org, user)
	}
}

// TestHung has a server accept calls that it answers when nobody waits any more.
func TestHung(t *testing.T) {
	s := budgets(t)
	l := hasty(t, s.Addr, cellserver.Closed)
	for s.Do(t, "ping") != "PONG" {
		continue
	}
	s.Hang(t)
	if _, err := l.Hold(t.Context(), time.Minute, use("org", "acme", 40)); err == nil {
		t.Error("held by a server that hangs")
	}
	s.Continue(t)
	for left(t, s, "org", "acme") != 1000 || l.Settlements().Waiting > 0 {
		time.Sleep(time.Millisecond)
	}
	h := holdFor(t, patient(t, s.Addr, cellserver.Closed), time.Minute, use("org", "acme", 40))
	_ = h
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Hold(ctx, time.Minute, use("org", "acme", 40)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check(t, h.Settle(ctx, 10)) // as of a client that has hung up
	drain(t, l)
	if got := left(t, s, "org", "acme"); got != 990 {
		t.Errorf("%d are left", got)
	}
}

func TestGivenUp(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	h := holdFor(t, l, long/2, use("org", "acme", 40))
	last := holdFor(t, l, long/2, use("org", "acme", 40))
	s.Stop()
	check(t, h.Settle(t.Context(), 10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := last.Settle(t.Context(), 1); err == nil {
		t.Error("a closed limiter keeps a settlement")
	}
	if got := l.Settlements(); got != (cellserver.Settlements{GivenUp: 2}) {
		t.Errorf("%+v", got)
	}
}

func TestCounted(t *testing.T) {
	s, restart := kept(t)
	l := patient(t, s.Addr, cellserver.Local)
	l.LocalUnits = map[string]int64{"org": 50, "user": 30}
	s.Stop()
	for i, tt := range []struct {
		uses    []cellserver.Use
		allowed bool
		settle  int64
		local   int64 // remaining of the first
	}{
		{[]cellserver.Use{use("org", "acme", 40), use("user", "ann", 20)}, true, 10, 10},
		{[]cellserver.Use{use("org", "acme", 20), use("user", "ann", 21)}, false, 0, 40},
		{[]cellserver.Use{use("org", "acme", 20), use("user", "ann", 20)}, true, 25, 20},
		{[]cellserver.Use{use("org", "acme", 16)}, false, 0, 15},
		{[]cellserver.Use{use("org", "acme", 15)}, true, 0, 0},
		{[]cellserver.Use{use("org", "other", 50)}, true, 50, 0},
	} {
		h, err := l.Hold(t.Context(), long/2, tt.uses...)
		if err != nil || h.Allowed != tt.allowed || h.Err == nil || h.Results[0].Remaining != tt.local {
			t.Fatalf("%d: %+v, %v", i, h, err)
		}
		check(t, h.Settle(t.Context(), tt.settle))
	}
	if _, err := l.Hold(t.Context(), time.Minute, use("org", "acme", 1), use("model", "m", 1)); err == nil {
		t.Error("a limit without LocalUnits is open")
	}
	s = restart()
	drain(t, l)
	for _, tt := range []struct {
		limit, key string
		want       int64
	}{{"org", "acme", 965}, {"user", "ann", 65}, {"org", "other", 950}} {
		if got := left(t, s, tt.limit, tt.key); got != tt.want {
			t.Errorf("%d of %s are left, want %d", got, tt.key, tt.want)
		}
	}
}

func TestCountedTime(t *testing.T) {
	s, restart := kept(t)
	l := patient(t, s.Addr, cellserver.Local)
	l.LocalUnits = map[string]int64{"org": 50, "user": 50}
	s.Stop()
	late := holdFor(t, l, time.Millisecond, use("org", "acme", 50))
	extended := holdFor(t, l, time.Minute, use("user", "ann", 20))
	if open, err := extended.Extend(t.Context(), time.Millisecond); !open || err != nil {
		t.Errorf("extended: %t, %v", open, err)
	}
	_, err := l.HoldBy(t.Context(), cellserver.HoldOptions{TTL: time.Millisecond, Charge: true}, use("user", "bob", 7))
	check(t, err)
	for { // until the time of the first is over
		h, err := l.Hold(t.Context(), time.Minute, use("org", "acme", 50))
		check(t, err)
		if h.Allowed {
			check(t, h.Cancel(t.Context()))
			break
		}
	}
	for l.Settlements().Waiting < 2 {
		time.Sleep(time.Millisecond)
	}
	check(t, late.Settle(t.Context(), 60))
	s = restart()
	drain(t, l)
	if org, ann, bob := left(t, s, "org", "acme"), left(t, s, "user", "ann"), left(t, s, "user", "bob"); org != 940 || ann != 100 || bob != 93 {
		t.Errorf("%d, %d, %d are left", org, ann, bob)
	}
}

// losing is a Client whose calls get lost on the way there, or on the way back.
type losing struct {
	cellserver.Client

	mu  sync.Mutex // guards the rest
	rng *rand.Rand
	off bool
	log []string
}

func (c *losing) Do(ctx context.Context, args ...any) *redis.Cmd {
	c.mu.Lock()
	there, back := !c.off && c.rng.IntN(8) == 0, !c.off && c.rng.IntN(8) == 0
	c.log = append(c.log, args[0].(string))
	c.mu.Unlock()
	if !there {
		if cmd := c.Client.Do(ctx, args...); !back {
			return cmd
		}
	}
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(io.EOF)
	return cmd
}

// TestLostCalls has calls and answers lost, of holds and of what is counted meanwhile: what was used is
// charged once.
func TestLostCalls(t *testing.T) {
	seed := servertest.Seed(t, rand.Uint64())
	s := budgets(t)
	s.Do(t, "cl.limit set org quota 1000000 month")
	l := patient(t, s.Addr, cellserver.Local)
	l.LocalUnits = map[string]int64{"org": 1 << 40, "user": 1 << 40}
	client := &losing{Client: l.Client, rng: rand.New(rand.NewPCG(seed, 1))}
	l.Client = client
	settled := atomic.Int64{}
	l.Note = func(_ string, s cellserver.Stage) {
		if s == cellserver.Settled {
			settled.Add(1)
		}
	}
	var want, holds int64
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 60 {
		h, err := l.Hold(t.Context(), long/2, use("org", "acme", 20))
		if err != nil || !h.Allowed {
			t.Fatalf("%+v, %v", h, err)
		}
		n := rng.Int64N(30)
		if err := h.Settle(t.Context(), n); err != nil {
			t.Error(err)
		}
		want, holds = want+n, holds+1
	}
	for l.Settlements().Waiting > 10 { // each loss is a pause
		time.Sleep(time.Millisecond)
	}
	client.mu.Lock()
	client.off = true
	client.mu.Unlock()
	drain(t, l)
	for left(t, s, "org", "acme") != 1_000_000-want { // the cancels of what was not answered are sent twice
		if t.Context().Err() != nil {
			t.Fatal()
		}
		time.Sleep(time.Millisecond)
	}
	if settled.Load() != holds || slices.Contains(client.log, "CL.CHECK") {
		t.Errorf("%d of %d settled", settled.Load(), holds)
	}
}

// TestLostDebit has no room for the hold that makes a debit repeatable.
func TestLostDebit(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Local)
	l.LocalUnits = map[string]int64{"org": 1000, "user": 1000}
	client := &only{Client: l.Client, command: "CL.CHECK"}
	client.all.Store(true)
	l.Client = client
	h := holdFor(t, l, long/2, use("org", "acme", 20), use("user", "ann", 20))
	s.Do(t, "cl.check user ann 100")
	client.all.Store(false)
	check(t, h.Settle(t.Context(), 30))
	drain(t, l)
	if got := l.Settlements().Lost; got != 60 {
		t.Errorf("%d are lost", got)
	}
	if org := left(t, s, "org", "acme"); org != 970 { // it was charged, or not: nobody knows
		t.Errorf("%d are left", org)
	}
}

// only loses the answers of a command, or all calls.
type only struct {
	cellserver.Client

	command string
	all     atomic.Bool
}

func (c *only) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(io.EOF)
	if c.all.Load() {
		return cmd
	}
	if answer := c.Client.Do(ctx, args...); args[0] != c.command {
		return answer
	}
	return cmd
}

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const sec = int64(1_000_000_000)

// addresses is a Pool of servers by address.
type addresses map[string]*servers.Server

func (a addresses) Clustered() bool { return false }

func (a addresses) Of(context.Context, string) (*servers.Server, error) { return a.At("a:1"), nil }

func (a addresses) At(addr string) *servers.Server {
	if a[addr] == nil {
		a[addr] = &servers.Server{Addr: addr}
	}
	return a[addr]
}

func (a addresses) Forgotten(s *servers.Server) bool { return a[s.Addr] != s }

func (a addresses) Send(context.Context, *servers.Server, []*servers.Call, int) {}

func opened(c Config) *Engine {
	c.Scripts, c.Now = script.New(false), func() int64 { return time.Now().UnixNano() }
	c.Filter = prefilter.New("", c.Now)
	if c.Pool == nil {
		c.Pool = addresses{}
	}
	return New(c)
}

// TestForgottenServersSenders: senders of servers that left their cluster are dropped.
func TestForgottenServersSenders(t *testing.T) {
	pool := addresses{}
	e := opened(Config{Pool: pool})
	sender := func(addr string) *Sender { return e.Sender(pool.At(addr)) }
	a, b := sender("a:1"), sender("b:1")
	if sender("c:1"); len(e.senders) != 3 || e.Sender(a.server) != a {
		t.Fatalf("%d senders", len(e.senders))
	}
	delete(pool, "a:1")
	delete(pool, "b:1")
	for _, l := range []*lane{&a.small, &a.large} {
		l.flying = 1
		if sender("d:1"); len(e.senders) != 3 || e.senders[a.server] != a || e.senders[b.server] != nil {
			t.Errorf("with a pipeline under way: %d senders", len(e.senders))
		}
		l.flying = 0
	}
	if sender("e:1"); len(e.senders) != 3 || e.senders[a.server] != nil {
		t.Errorf("%d senders", len(e.senders))
	}
}

// nobody is a Waiter without a caller.
type nobody struct{}

func (nobody) Waits(*servers.Server) bool { return true }

func (nobody) SentInVain(*servers.Failed) {}

func (nobody) Done(funnel.Result, int64, error) {}

func (nobody) Fail(*servers.Failed) {}

// TestRefundForgetsWhatWasReadBefore: a TAT read between a refund's arrival and its execution denies nothing
// later.
func TestRefundForgetsWhatWasReadBefore(t *testing.T) {
	nowNs := time.Now().UnixNano()
	e := opened(Config{})
	l, err := funnel.NewLimit(funnel.Burst, 0, 1, 3600)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(quantity int64) *store.Request {
		return &store.Request{Key: store.Key{Name: []byte("k")}, Rule: limiter.OfFunnel(l), Quantity: quantity}
	}
	line := &e.Sender(e.Pool.At("a:1")).Timeline
	line.Note(nowNs, nowNs, nowNs)
	k := &turn{key: "k", sentNs: nowNs + 1, count: 1}
	refund := ask(-1)
	k.taken.push(&Job{Request: refund, Step: refund, Waiter: nobody{}})
	e.Filter.Note([]byte("k"), nowNs+3600*sec, nowNs)
	if _, denied := e.Filter.Deny(ask(1), line, nowNs+1); !denied {
		t.Fatal("it is not denied before")
	}
	e.funnels.replay(k, script.FunnelReply{TATNs: nowNs + 3600*sec, NowNs: nowNs})
	if r, denied := e.Filter.Deny(ask(1), line, nowNs+2); denied {
		t.Errorf("it is denied still: %+v", r)
	}
}

// TestSeenNamesAreBounded: a large state is remembered without its bytes, and not under a long name.
func TestSeenNamesAreBounded(t *testing.T) {
	s := seen{keys: map[string]reading{}}
	for _, name := range []string{"short", strings.Repeat("n", seenBytes+1)} {
		large := script.Found{Value: strings.Repeat("x", script.LargeBytes+1)}
		s.add(name, reading{is: true, large: true, Found: large})
	}
	if k, is := s.keys["short"]; len(s.keys) != 1 || !is || !k.large || k.Value != "" {
		t.Errorf("%d keys are remembered, this one as %+v", len(s.keys), k)
	}
}

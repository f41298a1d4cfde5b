package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

func open(t *testing.T, config Config) *Pool {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = time.Minute
	}
	p, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// patient returns a context without a practical deadline.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := patience.Context(t.Context())
	t.Cleanup(cancel)
	return ctx
}

// add is not idempotent, so that tests can count executions.
var add = NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)

func TestOneServer(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: fmt.Sprintf("redis://%s/3", redistest.Server(t).Addr)})
	ctx := patient(t)
	if err := p.ready(ctx); err != nil {
		t.Fatal(err)
	}
	c := &Call{Script: add, Keys: []string{"a"}, Args: []any{2}}
	if err := p.Do(ctx, "a", c, 0); err != nil || c.Reply != int64(2) {
		t.Fatalf("the reply is %v, error %v", c.Reply, err)
	}
	s, err := p.Of(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	empty := NewScript(`return false`)
	list := NewScript(`return {1, 'two', redis.error_reply('three')}`)
	broken := NewScript(`return redis.error_reply('WRONGTYPE no')`)
	calls := []*Call{
		{Script: add, Keys: []string{"a"}, Args: []any{int64(3)}},
		{Script: empty},
		{Script: broken},
		{Script: list},
		{Script: add, Keys: []string{"a"}, Args: []any{[]byte("4")}},
		{Script: empty},
	}
	p.Send(ctx, s, calls, 0)
	for i, want := range []string{"5 <nil>", "<nil> <nil>", "<nil> " + s.Addr + ": WRONGTYPE no", "[1 two ERR three] <nil>", "9 <nil>",
		"<nil> <nil>"} {
		if got := fmt.Sprint(calls[i].Reply, " ", calls[i].Err); got != want {
			t.Errorf("call %d is answered by %s, want %s", i, got, want)
		}
	}
	if stats := p.Stats(); len(stats) != 1 || stats[0].Loaded != 5 || stats[0].Failed[WrongType] != 1 || stats[0].Circuit != "closed" {
		t.Errorf("the statistics are %+v", stats)
	}
	if n, err := s.Client().DBSize(ctx).Result(); n != 1 || err != nil {
		t.Errorf("database 3 has %d keys, error %v", n, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: "redis://" + processtest.FreeAddr(t), Timeout: 200 * time.Millisecond})
	c := &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}
	var failed *Failed
	if err := p.Do(t.Context(), "a", c, 0); !errors.As(err, &failed) || failed.Executed != No {
		t.Errorf("a call without a server fails with %+v", failed)
	}
	if !patience.Until(func() bool { // a busy machine may give up before it is refused
		if err := p.Do(t.Context(), "a", c, 0); !errors.As(err, &failed) || failed.Executed != No {
			t.Fatalf("a call without a server fails with %+v", failed)
		}
		return failed.Reason == CircuitOpen && strings.Contains(p.Stats()[0].Error, "connection refused")
	}) {
		t.Errorf("the last call fails with %+v", failed)
	}
	if stats := p.Stats()[0]; stats.Failed[CircuitOpen] == 0 {
		t.Errorf("the statistics are %+v", stats)
	}
	if p.ready(t.Context()) == nil {
		t.Error("ready without a server")
	}
}

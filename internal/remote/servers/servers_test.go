package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/processtest"
)

// startRedis returns the port of a redis-server on loopback that ends with the test.
func startRedis(t *testing.T, args ...string) (port int) {
	t.Helper()
	path := processtest.Need(t, "redis-server", "redis-server")
	port = freePort(t)
	p := processtest.Start(t, processtest.Command(t, path, append([]string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...))
	client := redis.NewClient(&redis.Options{Addr: addr(port), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	p.Eventually(t, 20*time.Second, "be ready", func() bool {
		err := client.Ping(t.Context()).Err()
		return err == nil || redis.HasErrorPrefix(err, "NOAUTH")
	})
	return port
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func addr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func open(t *testing.T, config Config) *Pool {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second // generous: machines are busy
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

// add is a script that is not idempotent, so that tests see what was executed how often.
var add = NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)

func TestOneServer(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: fmt.Sprintf("redis://%s/3", addr(startRedis(t)))})
	ctx := deadline(t, 10*time.Second)
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	c := &Call{Script: add, Keys: []string{"a"}, Args: []any{2}}
	if err := p.Do(ctx, "a", c); err != nil || c.Reply != int64(2) {
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
	if stats := p.Stats(); len(stats) != 1 || stats[0].Loaded != 5 || stats[0].Failed[WrongType] != 1 || stats[0].State != "closed" {
		t.Errorf("the statistics are %+v", stats)
	}
	if n, err := s.Client().DBSize(ctx).Result(); n != 1 || err != nil {
		t.Errorf("database 3 has %d keys, error %v", n, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: "redis://" + addr(freePort(t)), Timeout: 20 * time.Millisecond})
	c := &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}
	var failed *Failed
	if err := p.Do(t.Context(), "a", c); !errors.As(err, &failed) || failed.Executed != No {
		t.Errorf("a call without a server fails with %+v", failed)
	}
	for p.Stats()[0].State != "open" {
		_ = p.Do(t.Context(), "a", c)
	}
	s, _ := p.Of(t.Context(), "a")
	p.Send(t.Context(), s, []*Call{c}, 0)
	if !errors.As(c.Err, &failed) || failed.Reason != CircuitOpen || failed.Executed != No {
		t.Errorf("a call while the circuit is open fails with %+v", failed)
	}
	if p.Ready(t.Context()) == nil {
		t.Error("ready without a server")
	}
}

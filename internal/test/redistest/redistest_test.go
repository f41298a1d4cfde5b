package redistest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

func TestServerKeepsItsPortAfterAKill(t *testing.T) {
	p := Server(t, "--requirepass", "secret", "--appendonly", "yes", "--appendfsync", "always")
	if err := p.Client().Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := p.Client().Get(t.Context(), "k").Err(); err == nil {
		t.Error("a killed server has answered")
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Client().Get(t.Context(), "k").Result(); got != "1" {
		t.Errorf("after the restart: %q, %v", got, err)
	}
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestStoppedServerDoesNotAnswerUntilItContinues(t *testing.T) {
	p := Server(t)
	p.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Client().Ping(ctx).Err(); !timedOut(err) {
		t.Errorf("stopped: %v", err)
	}
	p.Continue()
	if err := p.Client().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestProxy(t *testing.T) {
	proxy := NewProxy(t, Server(t).Addr)
	client := NewClient(t, redis.Options{Addr: proxy.Addr, ContextTimeoutEnabled: true, DisableIdentity: true})
	ping := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return client.Ping(ctx).Err()
	}
	if err := ping(patience.Forever); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(time.Minute)
	if err := ping(50 * time.Millisecond); !timedOut(err) {
		t.Errorf("delayed: %v", err)
	}
	proxy.Heal()
	proxy.BlackHole()
	if err := ping(50 * time.Millisecond); !timedOut(err) {
		t.Errorf("black hole: %v", err)
	}
	proxy.Heal()
	proxy.Cut()
	if err := ping(patience.Forever); err == nil || timedOut(err) {
		t.Errorf("cut: %v", err)
	}
	proxy.Heal()
	if err := ping(patience.Forever); err != nil {
		t.Errorf("healed: %v", err)
	}
}

func TestClusterMovesSlotsAndReplacesAMaster(t *testing.T) {
	c := ProxiedCluster(t, "--cluster-node-timeout", "1000")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Masters[0].Addr}, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	ctx := t.Context()
	for i := range 10 {
		if err := client.Set(ctx, "{tag}"+strconv.Itoa(i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	from, err := c.Master(ctx, "{tag}")
	if err != nil {
		t.Fatal(err)
	}
	to := c.Masters[0]
	if from == to {
		to = c.Masters[1]
	}
	m := c.MigrateSlot(int(client.ClusterKeySlot(ctx, "{tag}").Val()), from, to)
	if err := m.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := m.Move(ctx, 4); n != 4 || err != nil {
		t.Fatalf("%d keys moved, %v", n, err)
	}
	if got, err := client.DBSize(ctx).Result(); got != 10 {
		t.Errorf("%d keys, %v", got, err)
	}
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if now, err := c.Master(ctx, "{tag}"); now != to {
		t.Errorf("the slot is at %v, %v", now, err)
	}
	to.Kill()
	var got string
	if !patience.Until(func() bool {
		got, err = client.Get(ctx, "{tag}7").Result()
		client.ReloadState(ctx) // the client polls once a minute, and nothing announces the new master
		return got == "7"
	}) {
		t.Fatalf("after the master's end: %q, %v", got, err)
	}
}

func TestSentinelsReplaceTheMaster(t *testing.T) {
	s := Sentinels(t)
	addrs := strings.Split(strings.TrimSuffix(strings.TrimPrefix(s.URL(), "redis-sentinel://"), "/mymaster"), ",")
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: addrs, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Master.Kill()
	var err error
	if !patience.Until(func() bool {
		err = client.Set(t.Context(), "k", 2, 0).Err()
		return err == nil
	}) {
		t.Fatal(err)
	}
}

func TestPortTaken(t *testing.T) {
	processtest.Need(t, "redis-server")
	other, attempts := Server(t), 0
	p, err := launch(t.Context(), t.TempDir(), nil, func(p *Process) error {
		if attempts++; attempts == 1 {
			p.args = append(p.args, "--port", strconv.Itoa(other.port))
		}
		return nil
	})
	if err != nil || attempts != 2 {
		t.Fatalf("%d attempts: %v", attempts, err)
	}
	endWith(t, p)
}

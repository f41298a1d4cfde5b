package cellserver_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

func TestSentinel(t *testing.T) {
	servertest.Need(t, "redis-server")
	s := servertest.Start(t, binary)
	s.Do(t, "cl.limit set api funnel 1 1 3600")
	_, port, _ := net.SplitHostPort(s.Addr)
	addr := servertest.FreeAddr(t)
	_, sentinelPort, _ := net.SplitHostPort(addr)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := "bind 127.0.0.1\nport " + sentinelPort + "\nsentinel monitor cellserver 127.0.0.1 " + port + " 1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "redis-server", file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // t.Context has killed it
	o := cellserver.FailoverOptions("cellserver", addr)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = long, long, long, long
	c := redis.NewFailoverClient(o)
	defer func() { _ = c.Close() }()
	l := &cellserver.Limiter{Client: c, OnError: cellserver.Closed, Timeout: long, Report: func(error) {}}
	r, err := l.Allow(t.Context(), "api", "k", 1)
	for err != nil { // until the Sentinel listens
		r, err = l.Allow(t.Context(), "api", "k", 1)
	}
	if !r.Allowed || r.Limit != 2 {
		t.Errorf("%+v", r)
	}
}

package harness

import (
	"net"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// StartRedis starts a redis-server that writes nothing to disk.
func StartRedis(t *testing.T, args ...string) *Process {
	t.Helper()
	path := processtest.Need(t, "redis-server")
	for range 5 { // another process may take the free port first
		addr := processtest.FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		p := Start(t, processtest.Command(t, path, append([]string{"--port", port, "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...))
		p.Addr = addr
		p.Eventually(t, "be ready", func() bool {
			return strings.Contains(p.Log.String(), "Ready to accept connections") || p.HasExited()
		})
		if !p.HasExited() {
			return p
		}
		p.Await(t)
		t.Logf("redis-server did not start:\n%s", p.Log.String())
	}
	t.Fatal("redis-server does not start")
	return nil
}

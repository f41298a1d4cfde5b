// Package redistest starts a real redis-server for tests that compare our replies with Redis's.
package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// Start runs a redis-server, which the test then needs, on a unix socket until the test ends, and returns a
// client.
func Start(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	path := processtest.Need(t, "redis-server")
	dir, err := os.MkdirTemp("", "redis") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	p := processtest.Start(t, processtest.Command(t, path, append([]string{"--port", "0", "--unixsocket", socket,
		"--save", "", "--appendonly", "no", "--dir", dir}, args...)...))
	client := NewClient(t, redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true})
	p.Eventually(t, "be ready", func() bool { return client.Ping(t.Context()).Err() == nil })
	return client
}

// NewClient returns a client that is closed with the test. It waits on however slow a machine, and does not
// retry: a repeated call would count twice.
func NewClient(t *testing.T, o redis.Options) *redis.Client {
	t.Helper()
	o.MaxRetries = -1
	o.DialTimeout, o.ReadTimeout = patience.Forever, patience.Forever
	o.WriteTimeout, o.PoolTimeout = patience.Forever, patience.Forever
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

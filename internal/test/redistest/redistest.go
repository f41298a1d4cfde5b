// Package redistest starts a real redis-server for tests that compare our replies with Redis's.
package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
)

// Start runs a Server that listens on a unix socket, too, and returns a client of that.
func Start(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	Server(t, append([]string{"--unixsocket", socket}, args...)...)
	return NewClient(t, redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true})
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

// Package redistest starts a real redis-server for a test that holds our answers against Redis's.
package redistest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const startTimeout = 20 * time.Second

// Start runs a redis-server on a unix socket until the test ends, and returns a client of it. Without a redis-server
// the test is skipped, but fails in CI, which must have one.
func Start(t testing.TB, args ...string) *redis.Client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		const why = "needs redis-server, of Debian's package redis-server"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	dir, err := os.MkdirTemp("", "redis") // a test's own directory may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, append([]string{"--port", "0", "--unixsocket", socket, "--save", "",
		"--appendonly", "no", "--dir", dir}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	for deadline := time.Now().Add(startTimeout); client.Ping(ctx).Err() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("redis-server did not start")
		}
	}
	return client
}

package harness

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cellserver/internal/app/ratelimit"
	"cellserver/internal/test/processtest"
)

// RatelimitAddrs are what a server has in the place of envoyproxy/ratelimit.
type RatelimitAddrs struct {
	HealthAndJSON string `json:"ratelimit_http"`
	Debug         string `json:"ratelimit_debug"`
	Prometheus    string `json:"ratelimit_metrics"`
}

// StartRatelimit starts the program under the name ratelimit, on free ports of loopback, and waits until it
// is ready. It has no environment but env, whose later values win, and a directory that it may not write to.
func StartRatelimit(t *testing.T, env []string, args ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link, dir := filepath.Join(t.TempDir(), ratelimit.Name), t.TempDir()
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	cmd := processtest.Command(t, link, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat([]string{
		execEnv + "=1", "CELLSERVER_ADDR=127.0.0.1:0", "CELLSERVER_METRICS_ADDR=127.0.0.1:0", "LOG_LEVEL=info", "LOG_FORMAT=json",
		"HOST=127.0.0.1", "PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0",
	}, env)
	p := Start(t, cmd)
	p.Eventually(t, "be ready", func() bool { return p.ReadReady() || p.HasExited() })
	if p.HasExited() {
		t.Fatalf("the server ended with %d", p.Cmd.ProcessState.ExitCode())
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the server has written %v, %v", left, err)
		}
	})
	return p
}

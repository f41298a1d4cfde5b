package deploytest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/redistest"
	"cellserver/lab/internal/built"
)

const serverPassword = "s3cret"

// checkFleetOfServers starts three cellservers with an environment and its files, and expects them to share a
// limit.
func checkFleetOfServers(t *testing.T, env []string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		local := write(t, dir, strings.ReplaceAll(path, "/", "_"), text)
		for i := range env {
			env[i] = strings.ReplaceAll(env[i], path, local)
		}
	}
	binary := built.Server(t)
	help := run(t, "", binary, "--help")
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "CELLSERVER_") && !isFlagVariable(help, name) {
			t.Errorf("%s is not the variable of a flag", name)
		}
	}
	left := int64(8)
	for i := range 3 {
		s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", append(slices.Clone(env), "CELLSERVER_STORE_TIMEOUT=1m")...)
		c := redistest.NewClient(t, redis.Options{Addr: s.addr, Password: serverPassword})
		s.Eventually(t, "be ready", func() bool { return isReady(s.metrics) })
		for range 3 {
			reply, err := c.Do(t.Context(), "CL.THROTTLE", "shared", 7, 1, 3600).Int64Slice()
			if err != nil {
				t.Fatalf("server %d: %v", i, err)
			}
			left = max(left-1, 0)
			if reply[2] != left {
				t.Errorf("server %d: %d are left, want %d", i, reply[2], left)
			}
		}
	}
}

// isReady makes Kubernetes's readiness probe.
func isReady(metrics string) bool {
	response, err := http.Get(fmt.Sprintf("http://%s/readyz", metrics))
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

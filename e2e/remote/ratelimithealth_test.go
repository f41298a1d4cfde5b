package remote

import (
	"io"
	"net/http"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
)

// TestHealthWithoutTheStore: in the place of envoyproxy/ratelimit a server stays healthy without its Redis,
// as there: else Kubernetes would end all of them. Its variable has it otherwise, and so are servers that
// have not seen the Redis.
func TestHealthWithoutTheStore(t *testing.T) {
	t.Parallel()
	on := redistest.Server(t)
	start := func(more ...string) *harness.Process {
		return harness.StartRatelimit(t, append(more,
			"CELLSERVER_USE_REDIS=true", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+on.Addr, "RUNTIME_ROOT="+t.TempDir()))
	}
	awaitHealth := func(what string, p *harness.Process, want int) {
		t.Helper()
		if !patience.Until(func() bool { return healthOf(t, p) == want }) {
			t.Fatalf("%s: /healthcheck is %d, want %d", what, healthOf(t, p), want)
		}
	}
	stays, follows := start(), start("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true")
	awaitHealth("at first", stays, http.StatusOK)
	awaitHealth("at first, with the variable", follows, http.StatusOK)
	on.Kill()
	awaitHealth("without the store, with the variable", follows, http.StatusInternalServerError)
	if !patience.Until(func() bool { return stays.Metric(t, "cellserver_store_masters_up") == 0 }) {
		t.Fatal("the store's end is not seen")
	}
	awaitHealth("without the store", stays, http.StatusOK)
	awaitHealth("started without the store", start(), http.StatusInternalServerError)
}

func healthOf(t *testing.T, p *harness.Process) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Ratelimit.HealthAndJSON+"/healthcheck", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

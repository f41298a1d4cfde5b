//go:build unix

package operation

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// configMap is a directory as Kubernetes mounts one: links that lead through ..data, which is replaced.
type configMap struct {
	dir      string
	versions int
}

func (c *configMap) set(t *testing.T, files map[string]string) {
	t.Helper()
	c.versions++
	version := "..version" + strings.Repeat("I", c.versions)
	if err := os.MkdirAll(filepath.Join(c.dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, version, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if link := filepath.Join(c.dir, name); c.versions == 1 {
			if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := filepath.Join(c.dir, "..next")
	if err := os.Symlink(version, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(c.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// TestRatelimitOfFiles: all files of a ConfigMap count, whatever their names, and its changes, over a socket.
func TestRatelimitOfFiles(t *testing.T) {
	t.Parallel()
	root, socket := t.TempDir(), filepath.Join(t.TempDir(), "s")
	config := &configMap{dir: filepath.Join(root, "ratelimit", "config")}
	if err := os.MkdirAll(config.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config.set(t, map[string]string{"one": limits("one", "1"), "two.conf": limits("two", "1")})
	if err := syscall.Mkfifo(filepath.Join(config.dir, "pipe"), 0o600); err != nil { // which nobody writes to
		t.Fatal(err)
	}
	p := harness.StartRatelimit(t, []string{
		"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "GRPC_UDS=" + socket, "EXTRA_TAGS=region:eu", "LIMIT_RESPONSE_HEADERS_ENABLED=true",
		"GRPC_MAX_CONNECTION_AGE=1h", "GRPC_MAX_CONNECTION_AGE_GRACE=1m", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_PATH=/of/it",
	})
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	client := &grpcClient{&http.Client{Transport: transport}, "http://ratelimit"}
	limited := func(domain string) bool {
		_, answer := client.call(t, rpc{path: shouldRateLimit, body: framed(field(1, domain)+field(2, entry("k", "v")), 0)})
		if len(answer) < 7 || answer[5] != 1<<3 {
			t.Fatalf("%q", answer)
		}
		return answer[6] == 2
	}
	for _, domain := range []string{"one", "two"} {
		if limited(domain) || !limited(domain) {
			t.Errorf("%s does not allow one call", domain)
		}
	}
	for _, url := range []string{p.Metrics + "/metrics", p.Ratelimit.Prometheus + "/metrics", p.Ratelimit.Prometheus + "/of/it"} {
		for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
			if _, text := get(t, "http://"+url, accept); !strings.Contains(text, "\n"+`ratelimit_service_rate_limit_total_hits{descriptor="k",domain="one",region="eu"} 2`) {
				t.Errorf("%s: %s has no series with a further label", url, accept)
			}
		}
	}
	config.set(t, map[string]string{"one": limits("one", "1000000"), "two.conf": limits("two", "1")})
	p.Eventually(t, "read the changed ConfigMap", func() bool { return !limited("one") || p.HasExited() })
}

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Metric returns the value of a metric, summed over its labels.
func (p *Process) Metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	_, body := p.Fetch(t, "/metrics", "")
	found := false
	for line := range strings.Lines(body) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != name && !strings.HasPrefix(f[0], name+"{") {
			continue
		}
		value, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, found = sum+value, true
	}
	if !found {
		t.Fatalf("no %s in /metrics", name)
	}
	return sum
}

// Fetch requests a path of the metrics address, with a Host header if host is set, and again while the server
// gives up because the machine is busy.
func (p *Process) Fetch(t *testing.T, path, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+p.Metrics+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	p.Eventually(t, "draw "+path, func() bool {
		status, body = do(t, http.DefaultClient, r)
		return status != http.StatusServiceUnavailable || !busy.MatchString(body)
	})
	return status, body
}

// busy is what a server says of itself, or cellserver health, that had no turn for some seconds.
var busy = regexp.MustCompile(`^the server does not respond; |event loop \d+ of \d+ does not respond|lock of a shard is not released|it took longer than`)

// Health calls cellserver health, and again while the machine is too busy for an answer in time.
func (p *Process) Health(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p.Eventually(t, "say its health", func() bool {
		code, stdout, stderr = Call(t, env, append([]string{"health"}, args...)...)
		return code == 0 || !busy.MatchString(stderr)
	})
	return code, stdout, stderr
}

// AwaitReady waits until /readyz says that the server is ready.
func (p *Process) AwaitReady(t *testing.T, pool *x509.CertPool) {
	t.Helper()
	p.Eventually(t, "be ready", func() bool { return p.Ask(t, "/readyz", "", pool) == http.StatusOK })
}

// Ask sends a request to the metrics address, by HTTPS if there is an authority, and returns the status.
func (p *Process) Ask(t *testing.T, path, token string, pool *x509.CertPool) int {
	t.Helper()
	scheme, transport := "http://", &http.Transport{DisableKeepAlives: true}
	if pool != nil {
		scheme, transport.TLSClientConfig = "https://", &tls.Config{RootCAs: pool}
	}
	r, err := http.NewRequest(http.MethodGet, scheme+p.Metrics+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	status, _ := do(t, &http.Client{Transport: transport}, r)
	return status
}

func do(t *testing.T, client *http.Client, r *http.Request) (status int, body string) {
	t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// Readiness returns the status and the text of /readyz.
func (p *Process) Readiness(t *testing.T) (code int, text string) {
	t.Helper()
	code, text = p.Fetch(t, "/readyz", "")
	return code, strings.TrimSpace(text)
}

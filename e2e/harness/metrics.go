package harness

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metric returns the value of a metric, summed over its labels.
func (p *Process) Metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	answer, err := http.Get("http://" + p.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(body)) {
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

// Fetch requests a path of the metrics address, with a Host header if host is set.
func (p *Process) Fetch(t *testing.T, path, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+p.Metrics+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := http.DefaultClient.Do(r)
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

// Ask sends a request to the metrics address, by HTTPS if there is an authority, and returns the status.
func (p *Process) Ask(t *testing.T, path, token string, pool *x509.CertPool) int {
	t.Helper()
	url := "http://" + p.Metrics + path
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if pool != nil {
		url = "https://" + p.Metrics + path
		client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Readiness returns the status and the text of /readyz.
func (p *Process) Readiness(t *testing.T) (code int, text string) {
	t.Helper()
	code, text = p.Fetch(t, "/readyz", "")
	return code, strings.TrimSpace(text)
}

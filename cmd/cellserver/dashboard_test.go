package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cellserver/internal/buildinfo"
)

// fetch requests a path of the metrics address, with a Host header if host is set.
func (p *process) fetch(t *testing.T, path, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+p.metrics+path, nil)
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

func TestDashboard(t *testing.T) {
	p := startServer(t)
	_, port, _ := net.SplitHostPort(p.metrics)
	for _, tt := range []struct {
		path, host string
		status     int
		want       string
	}{
		{"/", "", 200, "<dd>" + buildinfo.Version},
		{"/", "localhost:" + port, 200, "<h1>"},
		{"/", "rebound.example:" + port, 403, "answers only to"},
		{"/", "localhost:1", 200, "<h1>"}, // through a tunnel
		{"/live.json", "", 200, `"whole":true`},
		{"/live.json", "rebound.example:" + port, 403, "answers only to"},
		{"/metrics", "", 200, "cellserver_keys"},
		{"/healthz", "", 200, "ok"},
		{"/elsewhere", "", 404, "not found"},
	} {
		status, body := p.fetch(t, tt.path, tt.host)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s by %q: %d, want %d, with %q", tt.path, tt.host, status, tt.status, tt.want)
		}
	}
}

// TestProbeChangesNothing: the page shows the server's values, and inspecting a key neither creates nor changes it.
func TestProbeChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := startServer(t, "--burst-is-capacity")
	nc := p.dial(t)
	exchange(t, nc, "CL.THROTTLE k 10 1 3600 4\r\n", "*5\r\n:0\r\n:10\r\n:6\r\n:-1\r\n:14400\r\n")
	for _, tt := range []struct{ key, want string }{
		{"k", "<code>0 10 5 -1 1"}, {"nobody", "<code>0 10 9 -1 3600</code>"},
	} {
		if _, body := p.fetch(t, "/?max_burst=10&count=1&period=3600&key="+tt.key, ""); !strings.Contains(body, tt.want) {
			t.Errorf("key %s: the page lacks %q", tt.key, tt.want)
		}
	}
	exchange(t, nc, "EXISTS nobody\r\n", ":0\r\n")
	exchange(t, nc, "CL.THROTTLE k 10 1 3600 6\r\n", "*5\r\n:0\r\n:10\r\n:0\r\n:-1\r\n:3") // 36000 s or, on a slow machine, less
	p.Eventually(t, 20*time.Second, "show the connection and the key", func() bool {
		_, body := p.fetch(t, "/", "")
		return strings.Contains(body, `<dt>Connections</dt><dd><span class="value">1 <small>of `) && strings.Contains(body, `<dt>Keys</dt><dd><span class="value">1</span>`)
	})
}

func TestNoDashboard(t *testing.T) {
	p := startServer(t, "--no-dashboard")
	for _, path := range []string{"/", "/live.json"} {
		if status, _ := p.fetch(t, path, ""); status != 404 {
			t.Errorf("%s: %d, want 404", path, status)
		}
	}
	if status, _ := p.fetch(t, "/metrics", ""); status != 200 {
		t.Errorf("/metrics: %d, want 200", status)
	}
}

package operation

import (
	"html"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/base/buildinfo"
)

func TestDashboard(t *testing.T) {
	p := harness.StartServer(t)
	_, port, _ := net.SplitHostPort(p.Metrics)
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
		{"/runbook", "", 200, `<h2 id="cellserverdown">`},
		{"/runbook", "rebound.example:" + port, 403, "answers only to"},
		{"/metrics", "", 200, "cellserver_keys"},
		{"/healthz", "", 200, "ok"},
		{"/elsewhere", "", 404, "not found"},
		{"/v1/check/visitor?key=laoqian", "", 404, "--http-addr"},
	} {
		status, body := p.Fetch(t, tt.path, tt.host)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s by %q: %d, want %d, with %q", tt.path, tt.host, status, tt.status, tt.want)
		}
	}
}

// TestProbeChangesNothing: the page shows the server's values, and inspecting a key neither creates nor
// changes it.
func TestProbeChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := harness.StartServer(t, "--burst-is-capacity")
	nc := p.Dial(t)
	harness.Exchange(t, nc, "CL.THROTTLE k 10 1 3600 4\r\n", "*5\r\n:0\r\n:10\r\n:6\r\n:-1\r\n:14400\r\n")
	for _, tt := range []struct{ key, want string }{
		{"k", "<code>0 10 5 -1 1"}, {"nobody", "<code>0 10 9 -1 3600</code>"},
	} {
		if _, body := p.Fetch(t, "/?by=throttle+10+1+3600&key="+tt.key, ""); !strings.Contains(body, tt.want) {
			t.Errorf("key %s: the page lacks %q", tt.key, tt.want)
		}
	}
	harness.Exchange(t, nc, "EXISTS nobody\r\n", ":0\r\n")
	// 36000 s, or less on a slow machine
	harness.Exchange(t, nc, "CL.THROTTLE k 10 1 3600 6\r\n", "*5\r\n:0\r\n:10\r\n:0\r\n:-1\r\n:3")
	p.Eventually(t, "show the connection and the key", func() bool {
		_, body := p.Fetch(t, "/", "")
		return strings.Contains(body, `<dt>Connections</dt><dd><span class="value">1 <small>of `) && strings.Contains(body, `<dt>Keys</dt><dd><span class="value">1</span>`)
	})
}

// TestHotKeyLinks: a click on a hot key shows its state by the limit last requested.
func TestHotKeyLinks(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t)
	nc := p.Dial(t)
	for range 3 { // as calls are not counted while the page reads the ranking
		for _, call := range []string{"CL.THROTTLE f 14 1 3600", "CL.THROTTLE f 15 1 3600", "CL.PTHROTTLE m 0 7 250", "CL.FIXEDWINDOW w 5 3600", "CL.BUCKET TAKE b 9", "CL.CONCURRENCY ACQUIRE c 3 3600000"} {
			harness.Reply(t, nc, call)
		}
	}
	want := map[string]string{
		"f": "<dt>CL.THROTTLE with quantity 1 would reply</dt><dd><code>0 16 9 -1 ", "m": " of 1 units</dd>",
		"w": "<dt>CL.FIXEDWINDOW with quantity 1 would reply</dt><dd><code>0 5 1 -1 ", "b": "<dt>CL.BUCKET TAKE with quantity 1 would reply</dt><dd><code>1 9 0 ",
		"c": "3 of 3 units</dd>",
	}
	links := map[string]string{}
	p.Eventually(t, "list the keys", func() bool {
		_, body := p.Fetch(t, "/", "")
		for _, m := range regexp.MustCompile(`<a class="in" href="([^"]*)"><bdi [^>]*>([a-z])</bdi>`).FindAllStringSubmatch(body, -1) {
			links[m[2]] = html.UnescapeString(m[1])
		}
		return len(links) == len(want)
	})
	for key, text := range want {
		if _, body := p.Fetch(t, links[key], ""); !strings.Contains(body, text) {
			t.Errorf("%s leads to a page without %q", links[key], text)
		}
	}
}

// TestPageWarns: the page repeats the log's warnings of access as they apply now, and says how to connect.
func TestPageWarns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args       []string
		want       string // of the warnings; empty for none
		connection string
	}{
		{nil, "", "<code>redis-cli -p "},
		{[]string{"--addr", "0.0.0.0:0"}, "Clients on other hosts are refused", "<code>redis-cli -p "},
		{[]string{"--addr", "0.0.0.0:0", "--protected-mode=no"}, "Other hosts can use this server without a password", "<code>redis-cli -p "},
		{[]string{"--addr", "127.0.0.2:0", "--requirepass", "x"}, "", "<code>redis-cli -h 127.0.0.2 -p "},
		{[]string{"--metrics-addr", "0.0.0.0:0"}, "Other hosts can read this page without a password", "<code>redis-cli -p "},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			p := harness.StartServer(t, tt.args...)
			p.Metrics = strings.Replace(p.Metrics, "0.0.0.0", "127.0.0.1", 1)
			_, body := p.Fetch(t, "/?lang=en", "")
			if got := strings.Contains(body, `class="warnings"`); got != (tt.want != "") || !strings.Contains(body, tt.want) || !strings.Contains(body, tt.connection) {
				t.Errorf("the page warns: %t, want %q, and %q", got, tt.want, tt.connection)
			}
			if asks := strings.Contains(body, "--askpass"); asks != slices.Contains(tt.args, "--requirepass") {
				t.Errorf("the call asks for a password: %t", asks)
			}
		})
	}
}

func TestNoDashboard(t *testing.T) {
	p := harness.StartServer(t, "--no-dashboard")
	for path, want := range map[string]int{"/": 404, "/live.json": 404, "/runbook": 404, "/metrics": 200} {
		if got, _ := p.Fetch(t, path, ""); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

package metrics

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func basic(userPassword string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userPassword))
}

func TestAccess(t *testing.T) {
	const token = "long:token"
	for _, tt := range []struct {
		name, token, header string
		want                int
	}{
		{"open", "", "", 200},
		{"open, and a token all the same", "", "Bearer x", 200},
		{"token", token, "Bearer " + token, 200},
		{"token, other case", token, "bearer " + token, 200},
		{"nothing", token, "", 401},
		{"empty token", token, "Bearer ", 401},
		{"wrong token", token, "Bearer long:tokem", 401},
		{"part of the token", token, "Bearer long", 401},
		{"another scheme", token, "Digest " + token, 401},
		{"password", token, basic("prometheus:" + token), 200},
		{"password without a user", token, basic(":" + token), 200},
		{"no password", token, basic("prometheus:"), 401},
		{"wrong password", token, basic("prometheus:secret"), 401},
		{"user and password in one", token, basic(token), 401},
		{"nothing as a password", token, basic(""), 401},
		{"not base64", token, "Basic %%%", 401},
	} {
		h := newHarness(func(c *Config) { c.Profiles = true })
		h.config.Access.Set(tt.token)
		for _, path := range []string{"/metrics", "/debug/pprof/", "/nothing"} {
			want := tt.want
			if path == "/nothing" && want == http.StatusOK {
				want = http.StatusNotFound
			}
			answer := h.get(path, "Authorization", tt.header)
			var challenges []string
			for _, c := range answer.Header().Values("WWW-Authenticate") {
				scheme, _, _ := strings.Cut(c, " ")
				challenges = append(challenges, scheme)
			}
			challenge := map[bool]string{true: "Bearer Basic"}[tt.want == http.StatusUnauthorized]
			if got := strings.Join(challenges, " "); answer.Code != want || got != challenge {
				t.Errorf("%s: %s: got %d, %q, want %d, %q", tt.name, path, answer.Code, got, want, challenge)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if answer := h.get(path); answer.Code != http.StatusOK {
				t.Errorf("%s: %s: got %d", tt.name, path, answer.Code)
			}
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name        string
		ready, dead string
		profiles    bool
		want        map[string]int
	}{
		{"starting", "starting", "", false, map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/": 404, "/live.json": 404}},
		{"ready", "", "", false, map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200}},
		{"dead", "event loop 1 of 2 does not respond", "no response", false, map[string]int{"/healthz": 503, "/readyz": 503, "/metrics": 200}},
		{"with profiles", "", "", true, map[string]int{"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/cmdline": 404, "/debug/pprof/symbol": 200}},
	} {
		fails := func(why string) error {
			if why == "" {
				return nil
			}
			return errors.New(why)
		}
		h := newHarness(func(c *Config) {
			c.Ready, c.Alive = func(context.Context) error { return fails(tt.ready) }, func() error { return fails(tt.dead) }
			c.LostLogLines, c.Profiles = func() uint64 { return 7 }, tt.profiles
		})
		for path, want := range tt.want {
			if answer := h.get(path); answer.Code != want {
				t.Errorf("%s: %s: got %d, want %d", tt.name, path, answer.Code, want)
			}
		}
		if body := h.get("/readyz").Body.String(); body != cmp.Or(tt.ready, "ok")+"\n" {
			t.Errorf("%s: /readyz says %q", tt.name, body)
		}
		if ready := value(t, h.gather(t)["cellserver_ready"]); (ready == 1) != (tt.ready == "") {
			t.Errorf("%s: cellserver_ready is %g", tt.name, ready)
		}
		if page := h.scrape(t); !strings.Contains(page, "\ncellserver_log_lines_dropped_total{reason=\"full\"} 7\n") {
			t.Errorf("%s: the lost log lines are not counted", tt.name)
		}
	}
}

// TestAPIAtAnotherAddress: who takes the metrics address for the HTTP API's is told the flag of that.
func TestAPIAtAnotherAddress(t *testing.T) {
	if answer := newHarness().get("/v1/check/api?key=a"); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "--http-addr") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// TestFiguresThatDoNotCome checks that requests time out, that one at most is computed, and that health
// checks still answer.
func TestFiguresThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held, waiting := make(chan struct{}), atomic.Int32{}
		h := newHarness(func(c *Config) {
			c.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				waiting.Add(1)
				<-held
			})
		})
		for range 3 {
			var codes sync.WaitGroup
			begin := time.Now()
			for range 16 {
				codes.Go(func() {
					if answer := h.get("/"); answer.Code != http.StatusServiceUnavailable {
						t.Errorf("got %d", answer.Code)
					}
				})
			}
			codes.Wait()
			if took := time.Since(begin); took > renderTimeout || waiting.Load() != 1 {
				t.Errorf("%d requests wait, and the replies came after %s", waiting.Load(), took)
			}
			if answer := h.get("/healthz"); answer.Code != http.StatusOK {
				t.Errorf("/healthz: got %d", answer.Code)
			}
		}
		close(held)
		synctest.Wait()
		if answer := h.get("/"); answer.Code != http.StatusOK {
			t.Errorf("afterwards: got %d", answer.Code)
		}
	})
}

func TestPageIsOnlyRead(t *testing.T) {
	h := newHarness(func(c *Config) { c.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) })
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405} {
		answer := httptest.NewRecorder()
		h.http.ServeHTTP(answer, httptest.NewRequest(method, "/?key=a", nil))
		if answer.Code != want {
			t.Errorf("%s: got %d, want %d", method, answer.Code, want)
		}
	}
}

// TestHosts checks the Host header. A list of names leaves the health checks open; on loopback without one
// they are guarded.
func TestHosts(t *testing.T) {
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		boundTo string
		names   []string
		hosts   map[string]int
	}{
		{"127.0.0.1", nil, map[string]int{
			"localhost": 200, "localhost:9380": 200, "LocalHost:80": 200, "127.0.0.1:9380": 200, "127.1.2.3": 200, "[::1]:9380": 200, "[::1]": 200,
			"": 403, ":9380": 403, "localhost.": 403, "localhost:9380:9380": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:80": 403,
			"evil.example:9380": 403, "192.0.2.1:9380": 403, "[2001:db8::1]:9380": 403, "user@localhost": 403, "evil.example\\@localhost:80": 403,
		}},
		{"0.0.0.0", nil, map[string]int{"evil.example": 200, "192.0.2.1:9380": 200}},
		{"0.0.0.0", []string{"cellserver", "Metrics.example.com"}, map[string]int{
			"cellserver:9380": 200, "CELLSERVER": 200, "metrics.example.com": 200, "localhost:9380": 200, "127.0.0.1": 200,
			"192.0.2.1:9380": 200, "[2001:db8::1]:9380": 200,
			"": 403, ":9380": 403, "evil.example:9380": 403, "cellserver.evil.example": 403, "xcellserver": 403, "192.0.2.1.evil.example": 403,
		}},
		{"127.0.0.1", []string{"cellserver"}, map[string]int{
			"cellserver:9380": 200, "localhost": 200, "127.0.0.1:9380": 200, "[::1]:9380": 200, "192.0.2.1:9380": 403, "evil.example": 403,
		}},
	} {
		h := newHarness(func(c *Config) {
			c.BoundTo, c.Profiles, c.Page = &net.TCPAddr{IP: net.ParseIP(tt.boundTo), Port: 9380}, true, page
			c.AllowedHosts = tt.names
		})
		for host, want := range tt.hosts {
			for _, path := range []string{"/", "/live.json", "/runbook", "/metrics", "/debug/pprof/", "/healthz", "/readyz"} {
				want := want
				if strings.HasSuffix(path, "z") && tt.names != nil {
					want = http.StatusOK
				}
				request := httptest.NewRequest(http.MethodGet, path, nil)
				request.Host = host
				answer := httptest.NewRecorder()
				if h.http.ServeHTTP(answer, request); answer.Code != want {
					t.Errorf("%s, %q: Host %q: %s: got %d, want %d", tt.boundTo, tt.names, host, path, answer.Code, want)
				}
			}
		}
	}
}

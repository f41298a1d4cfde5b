package metrics

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func basic(userPassword string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userPassword))
}

func TestAccess(t *testing.T) {
	const token, userPassword = "long-token", "prometheus:se:cret"
	for _, tt := range []struct {
		name, token, userPassword, header string
		want                              int
		challenges                        string
	}{
		{"open", "", "", "", 200, ""},
		{"open, and a secret all the same", "", "", "Bearer x", 200, ""},
		{"token", token, "", "Bearer " + token, 200, ""},
		{"token, other case", token, "", "bearer " + token, 200, ""},
		{"no token", token, "", "", 401, "Bearer"},
		{"empty token", token, "", "Bearer ", 401, "Bearer"},
		{"wrong token", token, "", "Bearer long-tokem", 401, "Bearer"},
		{"part of the token", token, "", "Bearer long", 401, "Bearer"},
		{"token as a password", token, "", basic(":" + token), 401, "Bearer"},
		{"nothing as a password", token, "", basic(""), 401, "Bearer"},
		{"password", "", userPassword, basic(userPassword), 200, ""},
		{"no password", "", userPassword, "", 401, "Basic"},
		{"wrong password", "", userPassword, basic("prometheus:secret"), 401, "Basic"},
		{"wrong user", "", userPassword, basic("x:se:cret"), 401, "Basic"},
		{"password as a token", "", userPassword, "Bearer " + userPassword, 401, "Basic"},
		{"nothing as a token", "", userPassword, "Bearer ", 401, "Basic"},
		{"not base64", "", userPassword, "Basic %%%", 401, "Basic"},
		{"both, token", token, userPassword, "Bearer " + token, 200, ""},
		{"both, password", token, userPassword, basic(userPassword), 200, ""},
		{"both, nothing", token, userPassword, "", 401, "Bearer Basic"},
	} {
		r := newRig(func(c *Config) { c.Profiles = true })
		r.config.Access.Set(tt.token, tt.userPassword)
		for _, path := range []string{"/metrics", "/debug/pprof/", "/nothing"} {
			want := tt.want
			if path == "/nothing" && want == http.StatusOK {
				want = http.StatusNotFound
			}
			answer := r.get(path, "Authorization", tt.header)
			var challenges []string
			for _, c := range answer.Header().Values("WWW-Authenticate") {
				scheme, _, _ := strings.Cut(c, " ")
				challenges = append(challenges, scheme)
			}
			if got := strings.Join(challenges, " "); answer.Code != want || got != tt.challenges {
				t.Errorf("%s: %s: got %d, %q, want %d, %q", tt.name, path, answer.Code, got, want, tt.challenges)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if answer := r.get(path); answer.Code != http.StatusOK {
				t.Errorf("%s: %s: got %d", tt.name, path, answer.Code)
			}
		}
	}
}

func TestEndpoints(t *testing.T) {
	why := "starting"
	for _, tt := range []struct {
		name     string
		notReady string
		profiles bool
		want     map[string]int
	}{
		{"starting", why, false, map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/": 404}},
		{"ready", "", false, map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200}},
		{"with profiles", "", true, map[string]int{"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/cmdline": 404, "/debug/pprof/symbol": 200}},
	} {
		r := newRig(func(c *Config) { c.NotReady, c.Profiles = func() string { return tt.notReady }, tt.profiles })
		for path, want := range tt.want {
			if answer := r.get(path); answer.Code != want {
				t.Errorf("%s: %s: got %d, want %d", tt.name, path, answer.Code, want)
			}
		}
		if ready := value(t, r.gather(t)["cellserver_ready"]); (ready == 1) != (tt.notReady == "") {
			t.Errorf("%s: cellserver_ready is %g", tt.name, ready)
		}
	}
}

func TestPageIsOnlyRead(t *testing.T) {
	r := newRig(func(c *Config) { c.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) })
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405} {
		answer := httptest.NewRecorder()
		r.http.ServeHTTP(answer, httptest.NewRequest(method, "/?key=a", nil))
		if answer.Code != want {
			t.Errorf("%s: got %d, want %d", method, answer.Code, want)
		}
	}
}

func TestLoopbackHosts(t *testing.T) {
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	r := newRig(func(c *Config) {
		c.BoundTo, c.Profiles, c.Page = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9380}, true, page
	})
	for host, want := range map[string]int{
		"localhost":                   200,
		"localhost:9380":              200,
		"LocalHost:80":                200,
		"127.0.0.1:9380":              200,
		"127.1.2.3":                   200,
		"[::1]:9380":                  200,
		"[::1]":                       200,
		"":                            403,
		":9380":                       403,
		"localhost.":                  403,
		"localhost:9380:9380":         403,
		"localhost.evil.example":      403,
		"127.0.0.1.evil.example:80":   403,
		"evil.example:9380":           403,
		"192.0.2.1:9380":              403,
		"[2001:db8::1]:9380":          403,
		"user@localhost":              403,
		"evil.example\\@localhost:80": 403,
	} {
		for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/debug/pprof/"} {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Host = host
			answer := httptest.NewRecorder()
			if r.http.ServeHTTP(answer, request); answer.Code != want {
				t.Errorf("Host %q: %s: got %d, want %d", host, path, answer.Code, want)
			}
		}
	}
}

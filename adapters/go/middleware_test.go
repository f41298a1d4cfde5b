package cellserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

func TestAddressKey(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:80", "", "192.0.2.1"},
		{"192.0.2.1:80", "198.51.100.1", "192.0.2.1"}, // the peer is not trusted
		{"192.0.2.1:80", "no address", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:80", "", "192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:80", "", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:80", "", "fe80::/64"},
		{"10.0.0.1:80", "", "10.0.0.1"},
		{"10.0.0.1:80", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:80", "198.51.100.1:1234", "198.51.100.1"},
		{"10.0.0.1:80", "[2001:db8::1]:1234", "2001:db8::/64"},
		{"10.0.0.1:80", "made up, 203.0.113.9, 198.51.100.1 , 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:80", "203.0.113.9|198.51.100.1,10.0.0.2", "198.51.100.1"}, // two headers
		{"10.0.0.1:80", "198.51.100.1|", "198.51.100.1"},
		{"[fd00::1]:80", "10.0.0.3, 10.0.0.2", "10.0.0.3"}, // all are trusted
		{"10.0.0.1:80", "unknown", ""},
		{"10.0.0.1:80", "198.51.100.1, ", ""},
		{"@", "", ""},
	} {
		got, err := cellserver.AddressKey(tt.peer, strings.Split(tt.forwarded, "|"), trusted)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s, %q: %q, %v", tt.peer, tt.forwarded, got, err)
		}
	}
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

// send returns the status and the headers about limits, each after its name.
func send(t *testing.T, h http.Handler, edit func(*http.Request)) (status int, headers string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	edit(r)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	for _, name := range []string{"RateLimit-Policy", "RateLimit", "Retry-After"} {
		if v := w.Header().Values(name); len(v) > 0 {
			headers += name + ": " + strings.Join(v, ", ") + "\n"
		}
	}
	return w.Code, headers
}

func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr + ":80" }
}

func TestMiddleware(t *testing.T) {
	s := servertest.Start(t, binary)
	s.Do(t, "cl.limit set visitor fixedwindow 1 1000000000")
	s.Do(t, "cl.limit set site fixedwindow 5 1000000000")
	s.Do(t, "cl.limit override visitor 192.0.2.8 deny")
	s.Do(t, "cl.limit override visitor 192.0.2.9 unlimited")
	l := patient(t, s.Addr, cellserver.Closed)
	visitor := cellserver.Middleware{Limiter: l, Limit: "visitor", Key: cellserver.ByAddress()}
	all := func(*http.Request) (string, error) { return "all", nil }
	site := cellserver.Middleware{Limiter: l, Limit: "site", Key: all}
	h := site.Handler(visitor.Handler(ok))
	const (
		policies = `RateLimit-Policy: "site";q=5, "visitor";q=`
		retry    = "\nRetry-After: T\n"
	)
	for _, tt := range []struct {
		addr   string
		status int
		want   string
	}{
		{"192.0.2.1", 200, policies + `1` + "\n" + `RateLimit: "site";r=4;t=T, "visitor";r=0;t=T` + "\n"},
		{"192.0.2.1", 429, policies + `1` + "\n" + `RateLimit: "site";r=3;t=T, "visitor";r=0;t=T` + retry},
		{"192.0.2.8", 429, policies + `0` + "\n" + `RateLimit: "site";r=2;t=T, "visitor";r=0` + "\n"},
		{"192.0.2.9", 200, `RateLimit-Policy: "site";q=5` + "\n" + `RateLimit: "site";r=1;t=T` + "\n"},
		{"192.0.2.2", 200, policies + `1` + "\n" + `RateLimit: "site";r=0;t=T, "visitor";r=0;t=T` + "\n"},
		{"192.0.2.3", 429, `RateLimit-Policy: "site";q=5` + "\n" + `RateLimit: "site";r=0;t=T` + retry},
	} {
		status, headers := send(t, h, from(tt.addr))
		if got := times.ReplaceAllString(headers, "${1}T"); status != tt.status || got != tt.want {
			t.Errorf("%s: %d\n%swant %d\n%s", tt.addr, status, got, tt.status, tt.want)
		}
	}
	teapot := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	visitor.Denied = http.HandlerFunc(teapot)
	status, headers := send(t, visitor.Handler(ok), from("192.0.2.1"))
	if status != http.StatusTeapot || !strings.Contains(headers, "Retry-After") {
		t.Errorf("Denied: %d\n%s", status, headers)
	}
}

func TestMiddlewareWithoutServer(t *testing.T) {
	for onError, want := range map[cellserver.OnError][]string{
		cellserver.Open:   {"200 ", "200 ", "200 "},
		cellserver.Closed: {"503 Retry-After: T\n"},
		cellserver.Local: {
			"200 RateLimit-Policy: \"api\";q=2\nRateLimit: \"api\";r=1;t=T\n",
			"200 RateLimit-Policy: \"api\";q=2\nRateLimit: \"api\";r=0;t=T\n",
			"429 RateLimit-Policy: \"api\";q=2\nRateLimit: \"api\";r=0;t=T\nRetry-After: T\n",
		},
	} {
		m := cellserver.Middleware{Limiter: hasty(t, silent(t), onError), Limit: "api", Key: cellserver.ByAddress()}
		for i := range want {
			status, headers := send(t, m.Handler(ok), from("192.0.2.1"))
			if got := statusLine(status, headers); got != want[i] {
				t.Errorf("%d, request %d: %s, want %s", onError, i, got, want[i])
			}
		}
		// A client that hangs up must not get through.
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ended, http.MethodGet, "/", nil)
		w := httptest.NewRecorder()
		if m.Handler(ok).ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d, after hanging up: %d", onError, w.Code)
		}
	}
}

func TestKeys(t *testing.T) {
	user := func(r *http.Request) string { return r.Header.Get("X-User") }
	networks := netip.MustParsePrefix("192.0.2.0/24")
	allowed := []any{int64(0), int64(1), int64(0), int64(-1), int64(1)}
	for name, tt := range map[string]struct {
		key    cellserver.KeyFunc
		header []string
		want   string
		status int
	}{
		"header":          {cellserver.ByHeader("x-key"), []string{"X-Key", "k"}, "k", 200},
		"no header":       {cellserver.ByHeader("x-key"), nil, "", 400},
		"an empty header": {cellserver.ByHeader("x-key"), []string{"X-Key", ""}, "", 400},
		"two headers":     {cellserver.ByHeader("x-key"), []string{"X-Key", "a", "X-Key", "b"}, "", 400},
		"user":            {cellserver.ByUser(user), []string{"X-User", "u"}, "u", 200},
		"no user":         {cellserver.ByUser(user), nil, "", 401},
		"proxy": {cellserver.ByAddress(networks),
			[]string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "203.0.113.9"}, "203.0.113.9", 200},
		"stranger": {cellserver.ByAddress(), []string{"X-Forwarded-For", "203.0.113.9"}, "192.0.2.1", 200},
		"bad list": {cellserver.ByAddress(networks), []string{"X-Forwarded-For", "you"}, "", 400},
	} {
		t.Run(name, func(t *testing.T) {
			edit := func(r *http.Request) {
				r.RemoteAddr = "192.0.2.1:80"
				for i := 0; i < len(tt.header); i += 2 {
					r.Header.Add(tt.header[i], tt.header[i+1])
				}
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			edit(r)
			if got, err := tt.key(r); got != tt.want || (err == nil) != (tt.status == 200) {
				t.Errorf("%q, %v", got, err)
			}
			l := &cellserver.Limiter{Client: scripted(func() []any { return allowed })}
			m := cellserver.Middleware{Limiter: l, Limit: "api", Key: tt.key}
			if status, _ := send(t, m.Handler(ok), edit); status != tt.status {
				t.Errorf("status %d", status)
			}
		})
	}
}

package proxies

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// TestExactlyTheAllowed sends parallel requests of two visitors, API keys, and a user: as many as
// allowed reach the site.
func TestExactlyTheAllowed(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true})
		for _, one := range []struct {
			limit   string
			visit   visit
			allowed int64
		}{
			{"visitor", visit{from: "127.0.0.1", path: "/"}, 20},
			{"visitor", visit{from: "127.0.0.2", path: "/a?b=c"}, 20},
			{"api-key", visit{path: "/api/", key: "one"}, 100},
			{"api-key", visit{from: "127.0.0.2", path: "/api/x", key: "two&denied=200"}, 100},
			{"user", visit{path: "/account/", user: "laoqian", password: "secret"}, 50},
		} {
			before := s.served.Load()
			allowed, denied := s.flood(t, one.visit, int(2*one.allowed))
			if got := s.served.Load() - before; got != one.allowed || allowed != one.allowed || denied != one.allowed {
				t.Errorf("%+v: %d reached the site, %d were allowed and %d denied, want %d of each", one.visit, got, allowed, denied, one.allowed)
			}
			h := s.expect(t, one.visit, http.StatusTooManyRequests)
			if !strings.HasPrefix(h.Get("RateLimit"), `"`+one.limit+`";r=0;t=`) || !strings.HasPrefix(h.Get("RateLimit-Policy"), `"`+one.limit+`";q=`) ||
				h.Get("Retry-After") == "" {
				t.Errorf("%+v: a denial has the headers %v", one.visit, h)
			}
		}
	})
}

// TestNetworksOfIPv6: a visitor has as much of a limit as its /64, by the same key behind each proxy, and one
// of IPv4 has its own, also if a listener of both tells it as IPv6.
func TestNetworksOfIPv6(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true, behind: true})
		count := func(format string, n int) (allowed int) {
			for i := range n {
				from := strings.ReplaceAll(format, "N", strconv.FormatInt(int64(i+1), 16))
				got, err := s.send(t.Context(), visit{path: "/", header: http.Header{"X-Forwarded-For": {from}}})
				if err != nil {
					t.Fatal(err)
				}
				if got.status == http.StatusOK {
					allowed++
				}
			}
			return allowed
		}
		nc := s.limiter.Dial(t)
		for _, tt := range []struct {
			from    string
			n, want int
			key     string // after the limit's name; "" for none in particular
		}{
			{"2001:db8:1:2::N", 50, 20, "2001:db8:1:2::/64"},
			{"2001:db8:1:2:N::1", 10, 0, "2001:db8:1:2::/64"},
			{"2001:db8:7::N", 30, 20, "2001:db8:7::/64"},
			{"2001:0:0:3:N:1:1:1", 30, 20, "2001:0:0:3::/64"},
			{"2001:db8:1:N::1", 1, 1, "2001:db8:1:1::/64"},
			{"2001:db8:8:N::1", 30, 30, ""},
			{"192.0.2.1", 15, 15, "192.0.2.1"},
			{"::ffff:192.0.2.1", 15, 5, "192.0.2.1"},
			{"::ffff:192.0.2.9", 5, 5, "192.0.2.9"},
		} {
			got := count(tt.from, tt.n)
			t.Logf("%s: of %d visits by %s %d are allowed", r.program, tt.n, tt.from, got)
			if got != tt.want {
				t.Errorf("%s: of %d visits by %s %d are allowed, want %d", r.program, tt.n, tt.from, got, tt.want)
			}
			if tt.key != "" {
				harness.Exchange(t, nc, "EXISTS visitor:"+tt.key+"\r\n", ":1\r\n")
			}
		}
	})
}

// TestTenLines: nginx's block of the README limits each address.
func TestTenLines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	s := startStack(t, recipe{program: "nginx", start: startTenLines}, mode{})
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if allowed, denied := s.flood(t, visit{from: from, path: "/"}, 30); allowed != 20 || denied != 10 {
			t.Errorf("of 30 requests %d are allowed and %d denied", allowed, denied)
		}
		if h := s.expect(t, visit{from: from, path: "/"}, http.StatusTooManyRequests); h.Get("Retry-After") == "" {
			t.Errorf("a denial has the headers %v", h)
		}
	}
	s.limiter.Stop(t, syscall.SIGKILL)
	s.expect(t, visit{from: "127.0.0.3", path: "/"}, http.StatusInternalServerError)
}

// flood sends n requests, 16 at once.
func (s *stack) flood(t *testing.T, v visit, n int) (allowed, denied int64) {
	t.Helper()
	var ok, limited, next atomic.Int64
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for next.Add(1) <= int64(n) {
				switch got, err := s.send(t.Context(), v); {
				case err != nil:
					t.Error(err)
				case got.status == http.StatusOK:
					ok.Add(1)
				case got.status == http.StatusTooManyRequests:
					limited.Add(1)
				default:
					t.Errorf("%+v is answered %d: %v", v, got.status, got.header)
				}
			}
		})
	}
	senders.Wait()
	return ok.Load(), limited.Load()
}

// TestWhatVisitorsSee: headers of an allowed request, and refusals that use up nobody's limit.
func TestWhatVisitorsSee(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true})
		s.expect(t, visit{path: "/api/"}, http.StatusUnauthorized)
		s.expect(t, visit{path: "/account/"}, http.StatusUnauthorized)
		s.expect(t, visit{path: "/account/", user: "laoqian", password: "guess"}, http.StatusUnauthorized)
		if n := s.served.Load(); n != 0 {
			t.Errorf("%d requests without a key or user reached the site", n)
		}
		// What a browser sends along reaches the site, and keeps no visitor out.
		h := s.expect(t, visit{path: "/", header: http.Header{
			"Origin": {"https://elsewhere.example"}, "Sec-Fetch-Site": {"cross-site"}, "Cookie": {"a=b"},
			"X-Forwarded-For": {"10.0.0.1"}, "X-User": {"root"}, "X-Cellserver-Token": {"guess"},
		}}, http.StatusOK)
		if !strings.HasPrefix(h.Get("RateLimit"), `"visitor";r=19;t=`) || h.Get("Retry-After") != "" {
			t.Errorf("the first visit has the headers %v", h)
		}
		// The address that a visitor claims is not believed.
		if h := s.expect(t, visit{path: "/", header: http.Header{"X-Forwarded-For": {"10.0.0.2"}}}, http.StatusOK); !strings.HasPrefix(h.Get("RateLimit"), `"visitor";r=18;`) {
			t.Errorf("the second visit, under another name, has the headers %v", h)
		}
		if h := s.expect(t, visit{path: "/account/", user: "laoqian", password: "secret"}, http.StatusOK); !strings.HasPrefix(h.Get("RateLimit"), `"user";r=49;`) {
			t.Errorf("after a wrong password the user's first visit has the headers %v", h)
		}
	})
}

// TestConnectionsAreKept: a connection for each question would cost the proxy and cellserver several times
// the CPU time. Caddy has no choice: it leaves the body of an answer that allows unread, and passes a
// denial's on.
func TestConnectionsAreKept(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		if r.program == "caddy" {
			return
		}
		s := startStack(t, r, mode{patient: true})
		const questions, most = 20, 4 // processes and threads of a proxy have connections of their own
		for range questions {
			s.expect(t, visit{path: "/api/", key: "one"}, http.StatusOK)
		}
		if n := s.limiter.Metric(t, "cellserver_connections_accepted_total"); n > most {
			t.Errorf("%d questions took %.0f connections", questions, n)
		}
	})
}

// TestNginxTellsRefusals: nginx's own 403, as without its file of passwords, is not taken for cellserver's.
func TestNginxTellsRefusals(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	s := startStack(t, recipe{program: "nginx", start: startNginx}, mode{patient: true, mistaken: true})
	s.expect(t, visit{path: "/account/", user: "laoqian", password: "secret"}, http.StatusForbidden)
	s.expect(t, visit{path: "/"}, http.StatusServiceUnavailable)
}

// TestHAProxyLogsIn: the Lua action sends a password, and fails without one.
func TestHAProxyLogsIn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts HAProxy")
	}
	t.Parallel()
	r := recipe{program: "haproxy", start: startHAProxy}
	s := startStack(t, r, mode{closed: true, patient: true, password: "secret"})
	if allowed, denied := s.flood(t, visit{path: "/"}, 30); allowed != 20 || denied != 10 {
		t.Errorf("of 30 requests %d are allowed and %d denied", allowed, denied)
	}
	s.password = ""
	s.front = processtest.FreeAddr(t)
	startHAProxy(t, processtest.Need(t, r.program), s, mode{closed: true, patient: true})
	s.expect(t, visit{path: "/"}, http.StatusServiceUnavailable)
}

//go:build unix

package proxies

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// outage is a way in which cellserver gives no answer, and its end.
type outage struct {
	name       string
	begin, end func(t *testing.T, s *stack)
}

func outages() []outage {
	return []outage{
		{"killed", func(t *testing.T, s *stack) { s.limiter.Stop(t, syscall.SIGKILL) }, func(_ *testing.T, s *stack) { s.startLimiter() }},
		{"hanging", func(t *testing.T, s *stack) { s.limiter.Signal(t, syscall.SIGSTOP) }, func(t *testing.T, s *stack) { s.limiter.Signal(t, syscall.SIGCONT) }},
		{"late", func(_ *testing.T, s *stack) { s.http.Delay(time.Second); s.redis.Delay(time.Second) }, func(_ *testing.T, s *stack) { s.http.Heal(); s.redis.Heal() }},
	}
}

// TestAway: without an answer of cellserver a recipe allows or refuses, and limits again afterwards.
func TestAway(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		for _, how := range []struct {
			name string
			mode mode
		}{{"open", mode{}}, {"closed", mode{closed: true}}} {
			t.Run(how.name, func(t *testing.T) {
				s := startStack(t, r, how.mode)
				s.until(t, r, "limit", true)
				for _, o := range outages() {
					t.Run(o.name, func(t *testing.T) { s.suffer(t, r, how.mode, o) })
				}
			})
		}
	})
}

// until waits until requests are limited by cellserver, or no longer.
func (s *stack) until(t *testing.T, r recipe, what string, limited bool) {
	t.Helper()
	s.limiter.Eventually(t, what+" behind "+r.program, func() bool {
		got, err := s.send(t.Context(), visit{path: "/"})
		return err == nil && (got.header.Get("RateLimit") != "") == limited
	})
}

// suffer visits the site during an outage and after it. More visits than are allowed tell an open recipe from
// one that still asks.
func (s *stack) suffer(t *testing.T, r recipe, how mode, o outage) {
	t.Helper()
	o.begin(t, s)
	s.until(t, r, "let cellserver go", false) // a stopped process's threads stop one by one
	before := s.served.Load()
	const visits = 25
	for range visits {
		got, err := s.send(t.Context(), visit{path: "/"})
		switch {
		case err != nil:
			t.Fatal(err)
		case got.header.Get("RateLimit") != "":
			t.Errorf("cellserver is %s, and an answer has the headers %v", o.name, got.header)
		case !how.closed && got.status != http.StatusOK, how.closed && !s.refused(r, got.status):
			t.Errorf("cellserver is %s, and the answer is %d", o.name, got.status)
		}
	}
	want := int64(visits)
	if how.closed {
		want = 0
	}
	if got := s.served.Load() - before; got != want {
		t.Errorf("cellserver is %s, and %d of %d requests reached the site, want %d", o.name, got, visits, want)
	}
	o.end(t, s)
	s.until(t, r, "limit", true)
}

// refused reports whether a status is one of failing closed. Caddy has one for each failure.
func (s *stack) refused(r recipe, status int) bool {
	if r.closed != 0 {
		return status == r.closed
	}
	return status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout
}

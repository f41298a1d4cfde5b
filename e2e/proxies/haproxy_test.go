package proxies

import (
	"net/http"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// TestEquivalentPaths: what a site may take for /api/ needs a key there, however it is written.
func TestEquivalentPaths(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true})
		for _, path := range []string{"/api/", "//api/", "/%61pi/", "/./api/x", "/a/../api/", "/a/..//%61p%69/"} {
			s.expect(t, visit{path: path}, http.StatusUnauthorized)
		}
		if n := s.served.Load(); n != 0 {
			t.Errorf("%d requests without a key reached the site", n)
		}
	})
}

// TestHAProxyWithAPair: the section for a pair has HAProxy ask the leader, also after a planned change.
func TestHAProxyWithAPair(t *testing.T) {
	if testing.Short() {
		t.Skip("starts HAProxy")
	}
	t.Parallel()
	leader := processtest.FreeAddr(t)
	var other *harness.Process
	r := recipe{program: "haproxy", start: func(t *testing.T, program string, s *stack, how mode) {
		other = harness.StartServer(t, "--addr", processtest.FreeAddr(t), "--limits-file", s.limits, "--peer", s.redisAddr)
		_, section, _ := strings.Cut(read(t, "deploy/haproxy/haproxy.cfg"), "\n#listen leader\n")
		section = "#listen leader\n" + section
		own := strings.ReplaceAll(edit(t, section, "127.0.0.1:6479", leader, "10.0.0.1:6380", s.redisAddr, "10.0.0.2:6380", other.Addr,
			"inter 200ms", "inter 1s"), "#", "") // a busy machine may take as long for a check
		s.redis = redistest.NewProxy(t, leader)
		startHAProxyBut(t, program, s, how, section, own, "global\n", "global\nnbthread 1\n") // each thread keeps a connection
	}}
	s := startStack(t, r, mode{closed: true, patient: true})
	s.proxy.Logged(t, "Server leader/b is DOWN") // else it may become so after it was promoted, by a check from before
	s.asked(t, r, s.limiter)
	s.allows(t, visit{from: "127.0.0.1", path: "/"}, 12, 12)
	s.has(t, other, "127.0.0.1", 8)
	s.lead(t, r, other)
	s.allows(t, visit{from: "127.0.0.1", path: "/"}, 20, 8)
}

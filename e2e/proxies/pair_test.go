package proxies

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// TestNginxWithAPair: nginx asks the one of two servers that leads. When that is killed it fails open, or
// closed, until the other one leads; then the limit holds with its counts, also when the killed server is
// back, and after a planned change.
func TestNginxWithAPair(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	for name, how := range map[string]mode{"open": {}, "closed": {closed: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			how.patient, how.other = true, processtest.FreeAddr(t)
			r := recipe{program: "nginx", start: startNginx}
			s := startStack(t, r, how)
			other := harness.StartServer(t, "--addr", processtest.FreeAddr(t), "--http-addr", how.other, "--http-trusted-proxies", "127.0.0.1",
				"--limits-file", s.limits, "--peer", s.redisAddr)
			s.peer = other.Addr

			one := visit{from: "127.0.0.1", path: "/"}
			s.allows(t, one, 12, 12)
			s.has(t, other, "127.0.0.1", 8)
			s.limiter.Stop(t, syscall.SIGKILL)
			without := http.StatusOK
			if how.closed {
				without = http.StatusServiceUnavailable
			}
			for range 20 {
				if h := s.expect(t, one, without); h.Get("RateLimit") != "" {
					t.Errorf("nobody leads, and an answer has the headers %v", h)
				}
			}
			s.lead(t, r, other)
			s.allows(t, one, 20, 8)

			s.startLimiter()
			s.has(t, s.limiter, "127.0.0.1", 0)
			two := visit{from: "127.0.0.2", path: "/"}
			s.allows(t, two, 15, 15)
			s.has(t, s.limiter, "127.0.0.2", 5)
			s.lead(t, r, s.limiter)
			s.allows(t, one, 20, 0)
			s.allows(t, two, 20, 5)
		})
	}
}

// TestNginxWithALimitOfTheLeader: a replica that lacks a limit does not answer in its leader's place. A limit
// that neither has is a mistake, and not an outage.
func TestNginxWithALimitOfTheLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	how := mode{patient: true, other: processtest.FreeAddr(t), edits: []string{"api-key?by=hash:header:X-Api-Key", "none?by=ip"}}
	s := startStack(t, recipe{program: "nginx", start: startNginx}, how)
	other := harness.StartServer(t, "--addr", processtest.FreeAddr(t), "--http-addr", how.other, "--http-trusted-proxies", "127.0.0.1",
		"--limits-file", harness.WriteFile(t, "limits:\n  other: {rules: [{algorithm: funnel, max_burst: 1, count: 1, period: 1d}]}\n"),
		"--peer", s.redisAddr)
	c := harness.GoRedis(t, redis.Options{Addr: other.Addr, Protocol: 2})
	other.Eventually(t, "follow", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	s.allows(t, visit{from: "127.0.0.1", path: "/"}, 24, 20)
	for range 8 {
		got, err := s.send(t.Context(), visit{path: "/api/", key: "one"})
		if err != nil || got.status != http.StatusServiceUnavailable || !strings.HasPrefix(got.body, "the limiter refuses the question") {
			t.Errorf("an unknown limit is answered %d: %s, %v", got.status, got.body, err)
		}
	}
}

// allows sends n requests one by one, of which cellserver must decide all and allow some.
func (s *stack) allows(t *testing.T, v visit, n, want int) {
	t.Helper()
	allowed := 0
	for range n {
		got, err := s.send(t.Context(), v)
		switch {
		case err != nil:
			t.Fatal(err)
		case !strings.HasPrefix(got.header.Get("RateLimit"), `"visitor";`):
			t.Fatalf("%+v is not decided by cellserver: %d, %v", v, got.status, got.header)
		case got.status == http.StatusOK:
			allowed++
		}
	}
	if allowed != want {
		t.Errorf("of %d requests by %s %d are allowed, want %d", n, v.from, allowed, want)
	}
}

// has waits until a replica has what a visitor was charged, of which units remain.
func (s *stack) has(t *testing.T, replica *harness.Process, visitor string, remaining int64) {
	t.Helper()
	c := harness.GoRedis(t, redis.Options{Addr: replica.Addr, Protocol: 2})
	replica.Eventually(t, "follow", func() bool {
		reply, err := c.Do(t.Context(), "CL.CHECK", "visitor", visitor, 0).Int64Slice()
		return err == nil && reply[2] == remaining && strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// lead promotes a server, and waits until it is asked.
func (s *stack) lead(t *testing.T, r recipe, server *harness.Process) {
	t.Helper()
	c := harness.GoRedis(t, redis.Options{Addr: server.Addr, Protocol: 2})
	server.Eventually(t, "lead", func() bool {
		_ = c.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "role:master")
	})
	s.asked(t, r, server)
}

// asked waits until the proxy has decisions of a server.
func (s *stack) asked(t *testing.T, r recipe, server *harness.Process) {
	t.Helper()
	server.Eventually(t, "be asked by "+r.program, func() bool {
		got, err := s.send(t.Context(), visit{from: "127.0.0.9", path: "/"})
		return err == nil && got.header.Get("RateLimit") != ""
	})
}

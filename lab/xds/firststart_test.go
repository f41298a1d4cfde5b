package xdstest

import (
	"fmt"
	"net/http"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestAwaitsConfig: nothing listens before the first configuration, not even while the server is connected
// and has said nothing, and not by one that is refused; then all do.
func TestAwaitsConfig(t *testing.T) {
	t.Parallel()
	p, door := startControlPlane(t), processtest.FreeAddr(t)
	p.Down()
	s := launch(t, ratelimit(t), p, "CELLSERVER_HTTP_ADDR="+door)
	s.doors["HTTP"] = door
	s.Logged(t, "the first limits for Envoy are awaited")
	closed := func(when string) {
		t.Helper()
		if open := s.doors.Open(); len(open) > 0 {
			t.Errorf("%s: served are %q", when, open)
		}
	}
	closed("without a server")
	p.Up(t)
	p.Until(t, "a stream", func() bool { return len(p.Heard()) > 0 })
	closed("while the server says nothing")
	twice := limits("shop", 1, "a")
	twice.Name = "second"
	p.Set(t, "bad", limits("shop", 1, "a"), twice)
	p.Until(t, "a refusal", func() bool { return len(p.Refusals()) > 0 })
	closed("after limits that are refused")

	p.Give(t, "1", limits("shop", 1, "a"))
	s.Logged(t, `"msg":"ready"`)
	if open := s.doors.Open(); len(open) != len(s.doors) {
		t.Errorf("served are only %q", open)
	}
	s.Becomes(t, "be healthy", func() bool {
		code, text := s.Get(t, "health", "/healthcheck")
		return code == http.StatusOK && text == "OK"
	})
	s.Expect(t, "with limits", "shop", "a=1", "OK", "OVER_LIMIT")
}

// TestAwaitsNoConfig: with the setting, it is healthy at once, and calls are errors until limits come; with
// HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED it is healthy while a domain has limits.
func TestAwaitsNoConfig(t *testing.T) {
	t.Parallel()
	type health struct {
		code       int
		named, all string
	}
	healthy, unhealthy := health{http.StatusOK, "SERVING", "SERVING"}, health{http.StatusInternalServerError, "NOT_SERVING", "SERVING"}
	for setting, without := range map[string]health{"false": healthy, "true": unhealthy} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			p := startControlPlane(t)
			p.Down()
			s := start(t, p, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED="+setting)
			s.Logged(t, `"msg":"ready"`)
			check := func(when string, want health, decides string) {
				t.Helper()
				s.Becomes(t, fmt.Sprintf("have the health %v %s", want, when), func() bool {
					code, _ := s.Get(t, "health", "/healthcheck")
					return health{code, s.Health(t, "ratelimit"), s.Health(t, "")} == want
				})
				s.Expect(t, when, "shop", "a=1", decides)
			}
			check("without a server", without, noRules)
			p.Up(t)
			p.Until(t, "a stream", func() bool { return len(p.Heard()) > 0 })
			check("while the server says nothing", without, noRules)
			p.Give(t, "1", limits("shop", 0, "a"))
			check("with limits", healthy, "OVER_LIMIT")
			p.Give(t, "2")
			check("after all limits were removed", without, "OK")
			p.Give(t, "3", limits("shop", 0, "a"))
			check("with limits again", healthy, "OVER_LIMIT")
		})
	}
}

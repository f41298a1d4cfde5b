package proxies

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
)

// TestNginxLogsIn: nginx's file sends a token to a server with a password. Without one, or with a wrong one,
// nobody passes, and no visitor is asked for a password.
func TestNginxLogsIn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef"
	user := regexp.MustCompile("(?m)^user nginx .*$").FindString(read(t, "docs/HTTP.md"))
	args := []string{
		"--http-tokens-file", harness.WriteFile(t, token+" nginx\n"),
		"--aclfile", harness.WriteFile(t, "user default on >secret ~* &* +@all\n"+user+"\n"),
	}
	for name, sent := range map[string]string{"right": token, "wrong": strings.ToUpper(token), "none": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, recipe{program: "nginx", start: startNginx}, mode{patient: true, args: args, token: sent})
			for _, v := range []visit{{path: "/"}, {path: "/api/", key: "one"}, {path: "/account/", user: "laoqian", password: "secret"}} {
				if sent == token {
					s.expect(t, v, http.StatusOK)
				} else if h := s.expect(t, v, http.StatusServiceUnavailable); h.Get("Www-Authenticate") != "" {
					t.Errorf("%+v is asked for a password: %v", v, h)
				}
			}
			if h := s.expect(t, visit{path: "/account/", user: "laoqian", password: "guess"}, http.StatusUnauthorized); !strings.HasPrefix(h.Get("Www-Authenticate"), "Basic ") {
				t.Errorf("a wrong password is answered with %v", h)
			}
			if sent != token {
				s.logs(t, "limiter=401")
			}
			if n := s.served.Load(); sent != token && n != 0 {
				t.Errorf("%d requests reached the site", n)
			}
		})
	}
}

// TestNginxTellsMistakes: a mistake in nginx's file, failing open, lets nobody pass, and is told apart from a
// limiter that gives no answer.
func TestNginxTellsMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	for name, one := range map[string]struct{ to, logged string }{
		"no limit":  {"check/none?by=ip", "404"},
		"no header": {"check/visitor?by=header:X-None", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStack(t, recipe{program: "nginx", start: startNginx}, mode{patient: true, edits: []string{"check/visitor?by=ip", one.to}})
			got, err := s.send(t.Context(), visit{path: "/"})
			if err != nil || got.status != http.StatusServiceUnavailable || !strings.HasPrefix(got.body, "the limiter refuses the question") {
				t.Errorf("a mistake is answered %d: %s, %v", got.status, got.body, err)
			}
			s.logs(t, "limiter="+one.logged)
		})
	}
}

// TestNginxTellsRequests: by= has the method and the path of the visitor.
func TestNginxTellsRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	s := startStack(t, recipe{program: "nginx", start: startNginx}, mode{patient: true, edits: []string{"visitor?by=ip", "visitor?by=ip,method,path"}})
	s.expect(t, visit{path: "/a/../b%63?d=e"}, http.StatusOK)
	harness.Exchange(t, s.limiter.Dial(t), "EXISTS visitor:"+keyOf(t, "127.0.0.1", "POST", "/bc")+"\r\n", ":1\r\n")
}

// TestNginxLogsUnasked: requests that pass because cellserver gives no answer are told by the log.
func TestNginxLogsUnasked(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	s := startStack(t, recipe{program: "nginx", start: startNginx}, mode{patient: true})
	s.expect(t, visit{path: "/asked"}, http.StatusOK)
	s.logs(t, `"POST /asked HTTP/1.1" 200 limiter=200`)
	s.limiter.Stop(t, syscall.SIGKILL)
	s.expect(t, visit{path: "/unasked"}, http.StatusOK)
	s.logs(t, `"POST /unasked HTTP/1.1" 200 limiter=50[0-9], 204`)
	s.expect(t, visit{path: "/api/"}, http.StatusUnauthorized)
	s.logs(t, `"POST /api/ HTTP/1.1" 401 limiter=-`)
}

// logs waits until nginx's log has a line with this end.
func (s *stack) logs(t *testing.T, end string) {
	t.Helper()
	line := regexp.MustCompile("(?m)" + end + "$")
	var log []byte
	if !patience.Until(func() bool {
		log, _ = os.ReadFile(s.log)
		return line.Match(log)
	}) {
		t.Errorf("the log has no line %s:\n%s", end, log)
	}
}

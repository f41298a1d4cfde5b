package proxies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// loginSite is an application behind the proxy as docs/HTTP.md has it: it asks by account and address
// before it looks at the password, and fails closed. Its accounts have the password "right".
func loginSite(t *testing.T, limiter string, looked *atomic.Int64) *httptest.Server {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth() // in place of a form
		question, err := json.Marshal(map[string]string{"limit": "login-account", "key": r.Header.Get("X-Forwarded-For") + " " + user})
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := http.Post(limiter+"/v1/check", "application/json", bytes.NewReader(question))
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = answer.Body.Close()
		switch {
		case answer.StatusCode != http.StatusOK:
			w.Header().Set("X-Site", "limited")
			w.Header().Set("Retry-After", answer.Header.Get("Retry-After"))
			w.WriteHeader(answer.StatusCode)
		case looked.Add(1) > 0 && password != "right":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(site.Close)
	return site
}

// TestPasswordsAreNotGuessed: behind nginx, with its file and the limits of docs/HTTP.md as they are
// printed, who guesses passwords is shut out for 15 minutes, first with the account, then with the address.
// Others log in meanwhile, also to the same account, CL.RESET lets the address in again, and without a
// limiter nobody logs in.
func TestPasswordsAreNotGuessed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	program := processtest.Need(t, "nginx")
	printed := limitsBlock.FindStringSubmatch(read(t, "docs/HTTP.md"))
	if printed == nil || !strings.Contains(printed[1], "block: 15m") {
		t.Fatal("docs/HTTP.md has no limits that block")
	}
	for line := range strings.Lines(printed[1]) {
		if strings.Contains(line, "login") && !strings.Contains(read(t, "docs/LIMITS-FILE.md"), line) {
			t.Errorf("docs/LIMITS-FILE.md has another limit than docs/HTTP.md: %s", line)
		}
	}
	s := &stack{
		t: t, front: processtest.FreeAddr(t), httpAddr: processtest.FreeAddr(t), redisAddr: processtest.FreeAddr(t),
		limits: harness.WriteFile(t, printed[1]),
	}
	var looked atomic.Int64
	s.site = loginSite(t, "http://"+s.httpAddr, &looked)
	s.http, s.redis = redistest.NewProxy(t, s.httpAddr), redistest.NewProxy(t, s.redisAddr)
	s.startLimiter()
	startNginx(t, program, s, mode{patient: true})
	const blocked = "900" // seconds, of the denial that begins it

	// guess tries passwords until it is limited, and returns how many were looked at.
	guess := func(from string, account func(i int) string, bySite bool) (tried int64) {
		before := looked.Load()
		for i := range 1000 { // on a slow machine some leak meanwhile
			got, err := s.send(t.Context(), visit{from: from, path: "/login", user: account(i), password: fmt.Sprint("guess ", i)})
			switch {
			case err != nil:
				t.Fatal(err)
			case got.status == http.StatusUnauthorized:
				continue
			case got.status != http.StatusTooManyRequests || bySite != (got.header.Get("X-Site") != ""):
				t.Fatalf("guess %d from %s is answered %d, %v", i, from, got.status, got.header)
			}
			if after := got.header.Values("Retry-After"); len(after) != 1 || after[0] != blocked {
				t.Errorf("shut out for %s seconds, want %s: %v", after, blocked, got.header)
			}
			return looked.Load() - before
		}
		t.Fatal("a thousand guesses are let through")
		return 0
	}
	login := func(from, account string, status int) {
		t.Helper()
		s.expect(t, visit{from: from, path: "/login", user: account, password: "right"}, status)
	}
	const robber, home = "127.0.0.2", "127.0.0.3"
	if n := guess(robber, func(int) string { return "laoqian" }, true); n < 5 {
		t.Errorf("only %d guesses are let through before an account is closed to an address", n)
	}
	login(robber, "laoqian", http.StatusTooManyRequests)
	login(robber, "wang", http.StatusNoContent) // it may be another person's address, too
	login(home, "laoqian", http.StatusNoContent)
	guess(robber, func(i int) string { return fmt.Sprint("account ", i) }, false)
	before := looked.Load()
	login(robber, "wang", http.StatusTooManyRequests)
	login(robber, "zoe", http.StatusTooManyRequests)
	for _, path := range []string{"/login/", "/Login", "//login", "/%6Cogin", "/login?next=/"} {
		s.expect(t, visit{from: robber, path: path, user: "zoe", password: "right"}, http.StatusTooManyRequests)
	}
	if looked.Load() != before {
		t.Error("the site looks at passwords from an address that is shut out")
	}
	login(home, "laoqian", http.StatusNoContent)
	login(home, "wang", http.StatusNoContent)

	c := s.client(t)
	if n, err := c.Do(t.Context(), "CL.RESET", "login-address:"+robber, "login-account:"+robber+" laoqian").Int(); err != nil || n != 2 {
		t.Errorf("CL.RESET: %d, %v, want 2", n, err)
	}
	login(robber, "laoqian", http.StatusNoContent)
	guess(robber, func(int) string { return "laoqian" }, true)
	forged := visit{from: robber, path: "/other", user: "laoqian", password: "right", header: http.Header{"X-Forwarded-For": {home}}}
	s.expect(t, forged, http.StatusTooManyRequests) // the site is told the address on every path

	before = looked.Load()
	s.limiter.Stop(t, syscall.SIGKILL)
	login(home, "laoqian", http.StatusServiceUnavailable)
	if looked.Load() != before {
		t.Error("the site looks at passwords while no limiter answers")
	}
}

package httpapi_test

import (
	"strings"
	"testing"

	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/server"
)

// TestNear: an allowed answer says that the key is near the limit, and a header names the limits.
func TestNear(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(*server.Config){"loops": nil, "net/http": goroutines} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, options{server: by})
			h.say(t, "CL.LIMIT SET org FIXEDWINDOW 10 3600", "CL.LIMIT SET user FIXEDWINDOW 10 3600 FIXEDWINDOW 20 86400", "CL.LIMIT SET trial FIXEDWINDOW 10 3600 SHADOW",
				"CL.LIMIT OVERRIDE org vip UNLIMITED", "CL.LIMIT OVERRIDE org mallory DENY", "CL.LIMIT OVERRIDE org big FIXEDWINDOW 100 3600", "CL.LIMIT OVERRIDE trial mallory DENY")
			is := func(call, body string, status int, header string, nears int) {
				t.Helper()
				got := h.post(t, call, body).has(t, "X-RateLimit-Near", header)
				if got.status != status || strings.Count(got.body, `,"near":true`) != nears || strings.Count(got.body, "near") != nears {
					t.Errorf("%s %s: got %d %s, want %d and %d of near", call, body, got.status, got.body, status, nears)
				}
			}
			of := func(limit, key, quantity string) string {
				return `{"limit":"` + limit + `","key":"` + key + `","quantity":` + quantity + `}`
			}
			is("check", of("org", "k", "7"), 200, "", 0)
			is("check", of("org", "k", "1"), 200, `"org"`, 1)
			is("check", of("org", "k", "0"), 200, `"org"`, 1)
			is("peek", `{"limit":"org","key":"k"}`, 200, `"org"`, 1)
			is("refund", of("org", "k", "1"), 200, "", 0)
			is("debit", of("org", "k", "3"), 200, `"org"`, 1)
			is("check", of("org", "k", "1"), 429, "", 0)
			is("debit", of("org", "k", "3"), 200, "", 0) // beyond the limit, it is not allowed
			is("check", of("org", "big", "79"), 200, "", 0)
			is("check", of("org", "big", "1"), 200, `"org"`, 1)
			is("check", of("org", "vip", "100"), 200, "", 0)
			is("check", of("org", "mallory", "0"), 429, "", 0)
			is("check", of("user", "k", "8"), 200, `"user"`, 1) // by one of its rules
			is("check", of("trial", "k", "8"), 200, `"trial"`, 1)
			is("check", of("trial", "k", "8"), 200, `"trial"`, 1) // would be denied
			is("check", of("trial", "mallory", "1"), 200, `"trial"`, 1)
			is("check", `{"key":"own","algorithm":"fixed_window","max_count":1,"period":60}`, 200, "", 0)
			// several: each limit once, and of a denial those that are allowed
			is("check", `{"checks":[`+of("user", "k", "1")+`,`+of("trial", "k", "0")+`,`+of("user", "l", "9")+`,`+of("org", "l", "1")+`]}`, 200, `"user", "trial"`, 3)
			is("check", `{"checks":[`+of("user", "k", "0")+`,`+of("org", "k", "1")+`]}`, 429, `"user"`, 1)
			is("reserve", `{"checks":[{"limit":"org","key":"held","units":8},{"limit":"user","key":"held","units":1}],"ttl_ms":1000,"id":"mine"}`, 200, `"org"`, 1)
			is("reserve", `{"checks":[{"limit":"org","key":"held","units":8},{"limit":"user","key":"held","units":1}],"ttl_ms":1000,"id":"mine"}`, 200, `"org"`, 1)
			is("reserve", `{"checks":[{"limit":"org","key":"held","units":3},{"limit":"trial","key":"held","units":11}],"ttl_ms":1000}`, 429, "", 0) // a look
			is("reserve", `{"checks":[{"limit":"trial","key":"held","units":11}],"ttl_ms":1000,"id":"mine"}`, 200, `"trial"`, 1)
			is("commit", `{"checks":[{"limit":"trial","key":"held","units":11}],"id":"mine"}`, 200, "", 0)
			for _, method := range []string{"GET", "HEAD"} {
				h.send(t, method, "/v1/check/org?key=held&quantity=0", "").is(t, 200, "").has(t, "X-RateLimit-Near", `"org"`)
				h.send(t, method, "/v1/check/org?key=held&quantity=9&denied=403", "").is(t, 403, "").has(t, "X-RateLimit-Near", "")
			}
		})
	}
}

// TestNearByHeaders: --http-headers=none leaves it out.
func TestNearByHeaders(t *testing.T) {
	t.Parallel()
	for _, headers := range []httpapi.Headers{httpapi.Draft, httpapi.Legacy, httpapi.Both, httpapi.None} {
		h := start(t, options{api: func(c *httpapi.Config) { c.Headers = headers }})
		h.say(t, "CL.LIMIT SET org FIXEDWINDOW 1 3600")
		want := `"org"`
		if headers == httpapi.None {
			want = ""
		}
		h.post(t, "check", `{"limit":"org","key":"k"}`).is(t, 200, `"near":true`).has(t, "X-RateLimit-Near", want)
		h.post(t, "check", `{"limit":"org","key":"k"}`).is(t, 429, "").has(t, "X-RateLimit-Near", "").has(t, "Retry-After", "3600")
	}
}

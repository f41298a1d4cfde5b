package proxies

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/randtest"
)

// keyOf prints the key of parts by the command.
func keyOf(t *testing.T, parts ...string) string {
	t.Helper()
	code, out, errOut := harness.Call(t, nil, append([]string{"limits", "key"}, parts...)...)
	if code != 0 || errOut != "" {
		t.Fatalf("limits key ends with %d: %s", code, errOut)
	}
	return strings.TrimSuffix(out, "\n")
}

func (s *stack) client(t *testing.T) *redis.Client {
	t.Helper()
	return harness.GoRedis(t, redis.Options{Addr: s.limiter.Addr, Protocol: 2})
}

// TestOverrides: an override of a visitor, an API key or a user holds behind each proxy, as CL.LIMIT EXPLAIN
// tells, and DEL of the same key lets it go on.
func TestOverrides(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true})
		c := s.client(t)
		for _, one := range []struct {
			limit, key string
			visit      visit
		}{
			{"visitor", keyOf(t, "127.0.0.3"), visit{from: "127.0.0.3", path: "/"}},
			{"api-key", keyOf(t, "hash:"+harness.WriteFile(t, "one\n")), visit{path: "/api/", key: "one"}},
			{"user", keyOf(t, "laoqian"), visit{path: "/account/", user: "laoqian", password: "secret"}},
		} {
			allows := func(what string, want int64) {
				t.Helper()
				if allowed, _ := s.flood(t, one.visit, 5); allowed != want {
					t.Errorf("%s %s, %s: %d of 5 requests are allowed, want %d", one.limit, one.key, what, allowed, want)
				}
			}
			do := func(args ...any) []any {
				t.Helper()
				reply, err := c.Do(t.Context(), args...).Result()
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				list, _ := reply.([]any)
				return list
			}
			do("CL.LIMIT", "OVERRIDE", one.limit, one.key, "FIXEDWINDOW", 2, 86400)
			allows("by the override", 2)
			if told := fmt.Sprint(do("CL.LIMIT", "EXPLAIN", one.limit, one.key)); !strings.Contains(told, "FIXEDWINDOW 2 86400") || !strings.Contains(told, "[1 2 0 ") {
				t.Errorf("%s %s is explained by %s", one.limit, one.key, told)
			}
			do("DEL", one.limit+":"+one.key)
			allows("after DEL", 2)
			do("CL.LIMIT", "OVERRIDE", one.limit, one.key, "DEL")
			allows("without the override", 5)
		}
	})
}

// TestUnknownKeys: who invents API keys has no limit and makes no keys. A known key has one, however its
// header is written.
func TestUnknownKeys(t *testing.T) {
	onEach(t, func(t *testing.T, r recipe) {
		s := startStack(t, r, mode{patient: true})
		for _, key := range []string{"three", "one, two", "one,three", "o", "onee", "{one}", "one:", "yes", "no", "default"} {
			s.expect(t, visit{path: "/api/", key: key}, http.StatusUnauthorized)
		}
		c, known := s.client(t), knownKeys()
		if n := c.DBSize(t.Context()).Val(); n != 0 || s.served.Load() != 0 {
			t.Errorf("unknown keys reached the site %d times and made %d keys", s.served.Load(), n)
		}
		s.expect(t, visit{path: "/api/", key: known[2]}, http.StatusOK)
		for _, values := range [][]string{{"ONE"}, {"One"}, {"one", "three"}, {"three", "one"}, {"one", "one"}} {
			if _, err := s.send(t.Context(), visit{path: "/api/", header: http.Header{"X-Api-Key": values}}); err != nil {
				t.Fatal(err)
			}
		}
		keys := c.Keys(t.Context(), "*").Val()
		allowed := []string{"api-key:" + keyOf(t, "hash:"+harness.WriteFile(t, "one")), "api-key:" + keyOf(t, "hash:"+harness.WriteFile(t, known[2]))}
		for _, key := range keys {
			if !slices.Contains(allowed, key) {
				t.Errorf("the key %s is of no known API key: %q", key, keys)
			}
		}
	})
}

// TestHAProxyComposesKeys: of any values, one or two, HAProxy's action charges the key that by= makes.
func TestHAProxyComposesKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("starts HAProxy")
	}
	t.Parallel()
	s := startStack(t, recipe{program: "haproxy", start: func(t *testing.T, program string, s *stack, how mode) {
		startHAProxyBut(t, program, s, how, "    http-request set-var(txn.limit_key) src,lua.limit_network if !by_key !by_user\n"+
			"    http-request lua.check_limit visitor txn.limit_key if !by_key !by_user\n",
			"    http-request set-var(txn.a) req.fhdr(X-A)\n    http-request set-var(txn.b) req.fhdr(X-B)\n"+
				"    http-request lua.check_limit visitor txn.a if !{ var(txn.b) -m found }\n"+
				"    http-request lua.check_limit visitor txn.a,txn.b if { var(txn.b) -m found }\n")
	}}, mode{patient: true})
	nc := s.limiter.Dial(t)
	r := randtest.New(t)
	tokens := []string{"0", "1", "3", "4", "12", ":", ":", ",", "a", "acme", "9999999999999999999999"}
	value := func() (text string) {
		for range 1 + r.IntN(6) {
			text += tokens[r.IntN(len(tokens))]
		}
		if r.IntN(2) == 0 {
			text = fmt.Sprint(len(text), ":", text)
		}
		return text
	}
	lists := [][]string{{"acme"}, {"4:acme"}, {"4:acme,3:foo"}, {"1:"}, {"0:"}, {"0"}, {"04:acme"}, {"4:acme,"}, {"2001:db8::/64"}, {"acme", "foo"}}
	for range 300 {
		list := []string{value()}
		if r.IntN(3) == 0 {
			list = append(list, value())
		}
		lists = append(lists, list)
	}
	for _, list := range lists {
		header, by := http.Header{"X-A": {list[0]}}, "header:X-A"
		if len(list) > 1 {
			header.Set("X-B", list[1])
			by += ",header:X-B"
		}
		harness.Exchange(t, nc, "FLUSHALL\r\n", "+OK\r\n")
		if got, err := s.send(t.Context(), visit{path: "/", header: header}); err != nil || got.status != http.StatusOK {
			t.Fatalf("%q: %d, %v", list, got.status, err)
		}
		if left := remaining(t.Context(), t, s, by, header); !strings.Contains(left, `"visitor";r=19;`) {
			t.Errorf("%q: HAProxy charges another key than by=%s, of which remains %s", list, by, left)
		}
	}
}

// remaining looks by HTTP at what is left of a request's key.
func remaining(ctx context.Context, t *testing.T, s *stack, by string, header http.Header) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.httpAddr+"/v1/check/visitor?quantity=0&by="+url.QueryEscape(by), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header.Get("RateLimit")
}

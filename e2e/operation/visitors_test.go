package operation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

const oneOfTwo = "limits:\n  visitor: {rules: [{algorithm: fixed_window, max_count: 2, period: 24h}]}\n"

// visitors send requests of which a limit of two allows some.
type visitors struct {
	name    string
	by      string
	headers func(i int) []string // of request i
	n, want int
}

// each returns the headers of requests that differ in one value.
func each(name string, values ...string) func(i int) []string {
	return func(i int) []string { return []string{name, values[i%len(values)]} }
}

// numbered returns a header with a number in its value.
func numbered(name, format string) func(i int) []string {
	return func(i int) []string { return []string{name, fmt.Sprintf(format, i)} }
}

// allowed sends the requests, and returns how many are allowed. Others must be denied.
func (v *visitors) allowed(t *testing.T, url string) (n int) {
	t.Helper()
	client := newHTTPClient(t, nil)
	for i := range v.n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/check/visitor?by="+v.by, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for headers := v.headers(i); len(headers) > 0; headers = headers[2:] {
			r.Header.Add(headers[0], headers[1])
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			n++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("%s: %v is answered %d", v.name, r.Header, response.StatusCode)
		}
	}
	return n
}

// count expects how many requests of each case a server allows.
func count(t *testing.T, flags []string, cases ...visitors) {
	t.Helper()
	limits := harness.WriteFile(t, oneOfTwo)
	p := harness.StartServer(t, append([]string{"--http-addr", "127.0.0.1:0", "--limits-file", limits}, flags...)...)
	nc := p.Dial(t)
	for _, v := range cases {
		if testing.Short() {
			v.n, v.want = min(v.n, 40), min(v.want, 40)
		}
		harness.Exchange(t, nc, "FLUSHALL\r\n", "+OK\r\n")
		got := v.allowed(t, "http://"+p.HTTP)
		t.Logf("%s: %d of %d are allowed", v.name, got, v.n)
		if got != v.want {
			t.Errorf("%s: %d of %d requests are allowed by a limit of 2, want %d", v.name, got, v.n, v.want)
		}
	}
}

// TestVisitorsByAddress: a host's network of IPv6 has one limit, and nobody chooses an address by a header.
func TestVisitorsByAddress(t *testing.T) {
	t.Parallel()
	const host, network = "2001:db8:1:2::%x", "2001:db8:1:%x::1"
	trusting := []string{"--http-trusted-proxies", "127.0.0.1,10.0.0.0/8"}
	count(t, trusting,
		visitors{"addresses of a /64", "ip", numbered("X-Forwarded-For", host), 300, 2},
		visitors{"addresses of a /64 as X-Real-IP", "ip", numbered("X-Real-IP", host), 300, 2},
		visitors{"addresses of a /64 with ports", "ip", numbered("X-Forwarded-For", "["+host+"]:443"), 300, 2},
		visitors{"networks", "ip", numbered("X-Forwarded-For", network), 300, 300},
		visitors{"addresses of IPv4", "ip", numbered("X-Forwarded-For", "192.0.2.%d"), 250, 250},
		visitors{"one of IPv4, also mapped", "ip", each("X-Forwarded-For", "192.0.2.1", "::ffff:192.0.2.1", "[::ffff:c000:201]:80", "::FFFF:C000:0201"), 40, 2},
		visitors{"mapped addresses of IPv4", "ip", numbered("X-Forwarded-For", "::ffff:192.0.2.%d"), 250, 250},
		visitors{"addresses of a /64 in Forwarded", "ip", numbered("Forwarded", `for="[`+host+`]:1";proto=https, for=10.0.0.1`), 300, 2},
		visitors{"forged hops of Forwarded", "ip", numbered("Forwarded", "for=6.6.6.%d, for=192.0.2.1"), 200, 2},
		visitors{"forged hops of X-Forwarded-For", "ip", numbered("X-Forwarded-For", "6.6.6.%d, 192.0.2.1"), 200, 2},
		visitors{"addresses of a /64 in a named header", "ip:CF-Connecting-IP", numbered("CF-Connecting-IP", host), 300, 2},
		visitors{"forged headers beside a named one", "ip:CF-Connecting-IP", func(i int) []string {
			return []string{"CF-Connecting-IP", "192.0.2.1", "X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i), "Forwarded", fmt.Sprintf("for=6.6.7.%d", i)}
		}, 200, 2},
	)
	count(t, append(trusting, "--http-ipv6-prefix", "128"),
		visitors{"addresses of a /64, each by itself", "ip", numbered("X-Forwarded-For", host), 300, 300})
	count(t, append(trusting, "--http-ipv6-prefix", "48"),
		visitors{"networks of a /48", "ip", numbered("X-Forwarded-For", network), 300, 2})
	forged := func(i int) []string {
		a := fmt.Sprintf("6.6.6.%d", i)
		return []string{"CF-Connecting-IP", a, "X-Forwarded-For", a, "X-Real-IP", a, "Forwarded", "for=" + a}
	}
	count(t, nil,
		visitors{"forged headers without a trusted proxy", "ip", forged, 200, 2},
		visitors{"a forged named header without a trusted proxy", "ip:CF-Connecting-IP", forged, 200, 2})
}

// TestVisitorsByRequest: a path, a host and a method in all their forms have one limit.
func TestVisitorsByRequest(t *testing.T) {
	t.Parallel()
	logins := []string{
		"/login", "/%6Cogin", "/%6cogi%6E", "//login", "/./login", "/a/../login", "/%2e/login", "/a/%2E%2e/login", "///login", "/..//login", "/a//../login",
		"/login?a=1", "/login#b", "http://site/login", "https://site//login?x",
	}
	apart := []string{"/Login", "/login/", "/login;a=1", "/a/login", "/a%2Flogin", "/a%252Flogin", "/a;/../login;b"}
	twice := slices.Concat(apart, apart)
	count(t, []string{"--http-trusted-proxies", "127.0.0.1"},
		visitors{"forms of a path in X-Forwarded-Uri", "path", each("X-Forwarded-Uri", logins...), 60, 2},
		visitors{"forms of a path in X-Original-URI", "path", each("X-Original-URI", logins...), 60, 2},
		visitors{"forms of a path in X-Original-URL", "path", each("X-Original-URL", logins...), 60, 2},
		visitors{"forms of an escape", "path", each("X-Forwarded-Uri", "/a%2fb", "/a%2Fb", "/%61%2fb"), 30, 2},
		visitors{"forms of a percent sign", "path", each("X-Forwarded-Uri", "/%zz", "/%25zz", "/%25%7Az"), 30, 2},
		visitors{"forms of the root", "path", each("X-Forwarded-Uri", "/", "//", "/.", "/a/..", "http://site", "http://site?/a"), 30, 2},
		visitors{"paths that differ", "path", each("X-Forwarded-Uri", twice...), len(twice), len(twice)},
		visitors{"forms of a host", "host", each("X-Forwarded-Host", "site.example", "Site.Example:8443", "SITE.example.", "site.example.:1"), 40, 2},
		visitors{"forms of a host in a URL", "host", each("X-Original-URL", "http://site.example/", "https://a@Site.Example:8443/", "http://b:c@site.example.?"), 30, 2},
		visitors{"forms of an address", "host", each("X-Forwarded-Host", "[2001:db8::1]", "[2001:DB8:0:0::1]:80", "[2001:0db8::1]:443"), 30, 2},
		visitors{"forms of a method", "method", each("X-Forwarded-Method", "GET", "get", "gEt"), 30, 2},
	)
}

// TestPrefixIsChecked: what is no prefix ends the start by a line.
func TestPrefixIsChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"--http-addr 127.0.0.1:0 --http-ipv6-prefix 31", "--http-ipv6-prefix takes a whole number from 32 to 128, such as 64"},
		{"--http-addr 127.0.0.1:0 --http-ipv6-prefix 129", "--http-ipv6-prefix takes a whole number from 32 to 128, such as 64"},
		{"--http-ipv6-prefix 56", "require --http-addr"},
	} {
		code, _, said := harness.Call(t, nil, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}, strings.Fields(tt.args)...)...)
		if code == 0 || !strings.Contains(said, tt.want) {
			t.Errorf("%s: exit %d, %s", tt.args, code, said)
		}
	}
	if _, help, _ := harness.Call(t, nil, "--help"); !strings.Contains(strings.Join(strings.Fields(help), " "), ":6380 is IPv4 and IPv6, and 0.0.0.0:6380 IPv4 alone") {
		t.Error("the help of --addr does not say which addresses are IPv4 alone")
	}
}

// TestOverrideOfParts: an override in the file that lists the parts of by= holds for these alone, and EXPLAIN
// tells so of the key that limits key prints.
func TestOverrideOfParts(t *testing.T) {
	t.Parallel()
	limits := harness.WriteFile(t, strings.Replace(oneOfTwo, "}]}", "}], overrides: [{keys: [[acme, /v1/x]], unlimited: true}]}", 1))
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--limits-file", limits)
	for _, v := range []visitors{
		{"the parts", "header:X-A,header:X-B", func(int) []string { return []string{"X-A", "acme", "X-B", "/v1/x"} }, 5, 5},
		{"other parts", "header:X-A,header:X-B", func(int) []string { return []string{"X-A", "acme", "X-B", "/v1/y"} }, 5, 2},
		{"a value that reads as the parts", "header:X-A", func(int) []string { return []string{"X-A", "4:acme,5:/v1/x"} }, 5, 2},
	} {
		if got := v.allowed(t, "http://"+p.HTTP); got != v.want {
			t.Errorf("%s: %d of %d are allowed, want %d", v.name, got, v.n, v.want)
		}
	}
	code, key, errOut := harness.Call(t, nil, "limits", "key", "acme", "/v1/x")
	if code != 0 {
		t.Fatal(errOut)
	}
	explained := harness.Database(t, p, 0).Do(t.Context(), "CL.LIMIT", "EXPLAIN", "visitor", strings.TrimSpace(key))
	if told := fmt.Sprint(explained.Val()); !strings.Contains(told, "UNLIMITED") {
		t.Errorf("%s is explained by %s", key, told)
	}
}

package httpapi_test

import (
	"strings"
	"testing"

	"cellserver/internal/test/resptest"
)

// TestCheckForProxy: queries, keys of parts, and statuses.
func TestCheckForProxy(t *testing.T) {
	t.Parallel()
	const noKey = "give either key=, or by="
	for _, tt := range []struct {
		query    string
		headers  []string
		status   int
		contains string
		key      string // that was charged
	}{
		{"api?key=u", nil, 200, `{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000}`, "u"},
		{"api?key=a%20b%2Bc+d", nil, 200, `"remaining":15`, "a b+c d"},
		{"api?key=full", nil, 429, `"status":429,"detail":"try again in 2 s"`, ""},
		{"api?key=full&denied=403", nil, 403, `"status":403`, ""},
		{"api?denied=401&key=full", nil, 401, `"status":401`, ""},
		{"api?key=u&quantity=3", nil, 200, `"remaining":13`, ""},
		{"api?key=u&quantity=0", nil, 200, `"remaining":16`, ""},
		{"api", nil, 400, noKey, ""},
		{"api?key=u&by=ip", nil, 400, noKey, ""},
		{"api?key=", nil, 200, `"remaining":15`, ""}, // as CL.CHECK api "" and POST,
		{"api?key=u&quantity=-1", nil, 400, "quantity must be", ""},
		{"api?key=u&quantity=x", nil, 400, "quantity must be", ""},
		{"api?key=u&quantity=", nil, 400, "quantity must be", ""},
		{"api?key=u&denied=404", nil, 400, "denied must be 401, 403 or 429", ""},
		{"api?key=u&x=1", nil, 400, `unknown parameter \"x\"`, ""},
		{"api?key=u&key=v", nil, 400, `the parameter \"key\" is there twice`, ""},
		{"api?key=u&a=&b=&c=&d=", nil, 400, "unknown parameter", ""},
		{"api?key=%zz", nil, 400, "percent sign", ""},
		{"nosuch?key=u", nil, 404, "there are api", ""},
		{"api/x?key=u", nil, 404, "there are api", ""},
		{"api?by=ip", []string{"X-Forwarded-For: 192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: 6.6.6.6, 192.0.2.1, 127.0.0.9"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 127.0.0.9"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: 127.0.0.8,127.0.0.9"}, 200, `"remaining":15`, "127.0.0.8"},
		{"api?by=ip", []string{"X-Forwarded-For: [2001:DB8::1]:443"}, 200, `"remaining":15`, "2001:db8::/64"},
		{"api?by=ip", []string{"X-Forwarded-For: ::ffff:192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: 192.0.2.1:5000"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: garbage, 192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Forwarded-For: 192.0.2.1, garbage"}, 400, "in place of an address", ""},
		{"api?by=ip", []string{"X-Forwarded-For: 192.0.2.1, "}, 400, "in place of an address", ""},
		{"api?by=ip", []string{"X-Real-IP: 192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Real-IP: 192.0.2.1", "X-Forwarded-For: 192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Real-IP: 127.0.0.9", "X-Forwarded-For: 192.0.2.1, 127.0.0.9"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Real-IP: 192.0.2.1", "X-Forwarded-For: 6.6.6.6"}, 400, "differ", ""},
		{"api?by=ip", []string{"X-Real-IP: x"}, 400, "X-Real-IP is not an address", ""},
		{"api?by=ip", nil, 400, "sends X-Forwarded-For or X-Real-IP", ""},
		{"api?by=ip", []string{"X-Forwarded-For: ::ffff:192.0.2.1", "X-Real-IP: 192.0.2.1", "Forwarded: for=\"[::ffff:192.0.2.1]\""}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"X-Real-IP: 2001:db8:1:2:ffff::1"}, 200, `"remaining":15`, "2001:db8:1:2::/64"},
		{"api?by=ip", []string{"X-Real-IP: fe80::1%eth0"}, 200, `"remaining":15`, "fe80::/64"},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"Forwarded: for=6.6.6.6, FOR=192.0.2.1:5000;proto=http;by=203.0.113.43, for=127.0.0.9"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"Forwarded: for=unknown", "Forwarded: proto=https; for=\"[2001:db8:1:2::9]:_x\" ;host=\"a,b;\\\"c\""}, 200, `"remaining":15`, "2001:db8:1:2::/64"},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.2"}, 400, "X-Forwarded-For and Forwarded differ", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1", "X-Real-IP: 192.0.2.2"}, 400, "Forwarded and X-Real-IP differ", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1, for=unknown"}, 400, "in place of for= and an address", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1, for=_hidden"}, 400, "in place of for= and an address", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1, proto=https"}, 400, "in place of for= and an address", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1;for=192.0.2.2"}, 400, "RFC 7239", ""},
		{"api?by=ip", []string{"Forwarded: for=\"192.0.2.1"}, 400, "RFC 7239", ""},
		{"api?by=ip", []string{"Forwarded: for=192.0.2.1 x"}, 400, "RFC 7239", ""},
		{"api?by=ip", []string{"Forwarded: 192.0.2.1"}, 400, "RFC 7239", ""},
		{"api?by=ip:CF-Connecting-IP", []string{"CF-Connecting-IP: 2001:db8:1:2:3::4", "X-Forwarded-For: 6.6.6.6"}, 200, `"remaining":15`, "2001:db8:1:2::/64"},
		{"api?by=ip:cf-connecting-ip,method", []string{"CF-Connecting-IP: 192.0.2.1", "X-Forwarded-Method: GET"}, 200, `"remaining":15`, "9:192.0.2.1,3:GET"},
		{"api?by=ip:x-forwarded-for", []string{"X-Forwarded-For: 6.6.6.6, 192.0.2.1", "X-Real-IP: 7.7.7.7"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip:forwarded", []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 6.6.6.6"}, 200, `"remaining":15`, "192.0.2.1"},
		{"api?by=ip:CF-Connecting-IP", []string{"X-Forwarded-For: 192.0.2.1"}, 400, "by=ip:CF-Connecting-IP requires", ""},
		{"api?by=ip:CF-Connecting-IP", []string{"CF-Connecting-IP: 192.0.2.1, 192.0.2.2"}, 400, "CF-Connecting-IP is not an address", ""},
		{"api?by=ip:CF-Connecting-IP", []string{"CF-Connecting-IP: 192.0.2.1", "CF-Connecting-IP: 192.0.2.2"}, 400, "more than once", ""},
		{"api?by=ip:", []string{"X-Real-IP: 192.0.2.1"}, 400, "there are ip", ""},
		{"api?by=ip:header:a", []string{"A: 192.0.2.1"}, 400, "there are ip", ""},
		{"api?by=method", []string{"X-Forwarded-Method: get"}, 200, `"remaining":15`, "GET"},
		{"api?by=method", []string{"X-Forwarded-Method: G T"}, 400, "has no method", ""},
		{"api?by=path", []string{"X-Forwarded-Uri: /a/../%6Cogin?b"}, 200, `"remaining":15`, "/login"},
		{"api?by=path", []string{"X-Forwarded-Uri: //login", "X-Original-URI: /./login"}, 200, `"remaining":15`, "/login"},
		{"api?by=method,path", []string{"X-Original-Method: POST", "X-Original-URI: /a/b?c=d"}, 200, `"remaining":15`, "4:POST,4:/a/b"},
		{"api?by=method,path,host", []string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: Example.com:443"}, 200, `"remaining":15`, "3:GET,1:/,11:example.com"},
		{"api?by=path,host", []string{"X-Original-URL: https://Example.com/a?b"}, 200, `"remaining":15`, "2:/a,11:example.com"},
		{"api?by=path", []string{"X-Original-URI: /a?b", "X-Forwarded-Uri: /a"}, 200, `"remaining":15`, "/a"},
		{"api?by=path", []string{"X-Original-URI: /a", "X-Forwarded-Uri: /b"}, 400, "differ about the path", ""},
		{"api?by=path", []string{"X-Original-URI: a"}, 400, "has no path", ""},
		{"api?by=path", nil, 400, "requires that the proxy sends X-Forwarded-Uri", ""},
		{"api?by=host", []string{"X-Original-URL: /a"}, 400, "requires that the proxy sends X-Forwarded-Host", ""},
		{"api?by=header:x-api-key", []string{"X-Api-Key: 7"}, 200, `"remaining":15`, "7"},
		{"api?by=header:a", []string{"A: 4:acme"}, 200, `"remaining":15`, "6:4:acme"},
		{"api?by=header:a", []string{"A: 4:acme,3:foo"}, 200, `"remaining":15`, "12:4:acme,3:foo"},
		{"api?by=header:a", []string{"A: 1:"}, 200, `"remaining":15`, "1:"},
		{"api?by=header:a,header:b", []string{"A: acme", "B: foo"}, 200, `"remaining":15`, "4:acme,3:foo"},
		{"api?by=hash:header:x-api-key", []string{"X-Api-Key: secret"}, 200, `"remaining":15`, "2bb80d537b1da3e38bd30361aa855686"},
		{"api?by=hash:header:x-api-key,path", []string{"X-Api-Key: secret", "X-Original-URI: /a"}, 200, `"remaining":15`, "32:2bb80d537b1da3e38bd30361aa855686,2:/a"},
		{"api?by=hash:ip", []string{"X-Real-IP: 2001:db8::7"}, 200, `"remaining":15`, "b22e912162f83195c2043c77ed6a9509"},
		{"api?by=hash:header:x-api-key", nil, 400, "has no header x-api-key", ""},
		{"api?by=hash:header:x-api-key", []string{"X-Api-Key: "}, 400, "has no header x-api-key", ""},
		{"api?by=hash:header:x-api-key", []string{"X-Api-Key: 1", "X-Api-Key: 2"}, 400, "more than once", ""},
		{"api?by=hash:", nil, 400, "there are ip", ""},
		{"api?by=hash:hash:ip", nil, 400, "there are ip", ""},
		{"api?by=header:x-api-key,header:b", []string{"X-Api-Key: 1,1:2", "B: "}, 400, "has no header b", ""},
		{"api?by=header:x-api-key", nil, 400, "has no header x-api-key", ""},
		{"api?by=header:x-api-key", []string{"X-Api-Key: 1", "X-Api-Key: 2"}, 400, "more than once", ""},
		{"api?by=header:", nil, 400, "there are ip", ""},
		{"api?by=header:a%0d", nil, 400, "there are ip", ""},
		{"api?by=", nil, 400, "there are ip", ""},
		{"api?by=IP", nil, 400, "there are ip", ""},
		{"api?by=ip,ip,ip,ip,ip,ip,ip,ip,ip", []string{"X-Real-IP: 192.0.2.1"}, 400, "more than 8 parts", ""},
	} {
		t.Run(tt.query+strings.Join(tt.headers, ";"), func(t *testing.T) {
			t.Parallel()
			h := withLimits(t, options{api: trusting("127.0.0.0/8")})
			h.say(t, "CL.CHECK api full 16")
			got := h.send(t, "GET", "/v1/check/"+tt.query, "", tt.headers...).is(t, tt.status, tt.contains)
			if tt.status != 200 {
				return
			}
			got.has(t, "RateLimit-Policy", `"api";q=16;w=32`)
			if tt.key == "" {
				return
			}
			if got, want := h.say(t, resptest.Encode("CL.CHECK", "api", tt.key, "0")), resptest.Ints(0, 16, 15, -1, 2); got != want {
				t.Errorf("the key %s was not charged: %q", tt.key, got)
			}
			h.send(t, "HEAD", "/v1/check/"+tt.query, "", tt.headers...).has(t, "RateLimit", `"api";r=14;t=4`)
		})
	}
}

// TestUntrustedProxy: nothing that a proxy tells is believed, and the address is the connection's.
func TestUntrustedProxy(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{api: trusting("10.0.0.0/8")})
	forged := []string{"X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1", "Forwarded: for=192.0.2.1", "CF-Connecting-IP: 192.0.2.1", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: a"}
	h.send(t, "GET", "/v1/check/api?by=ip", "", forged...).is(t, 200, `"remaining":15`)
	if got, want := h.say(t, "CL.CHECK api 127.0.0.1 0"), resptest.Ints(0, 16, 15, -1, 2); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, header := range []string{"CF-Connecting-IP", "Forwarded", "X-Forwarded-For"} {
		h.send(t, "GET", "/v1/check/api?quantity=0&by=ip:"+header, "", forged...).is(t, 200, `"remaining":15`)
	}
	for _, part := range []string{"method", "path", "host"} {
		h.send(t, "GET", "/v1/check/api?by="+part, "", forged...).is(t, 400, "--http-trusted-proxies")
	}
}

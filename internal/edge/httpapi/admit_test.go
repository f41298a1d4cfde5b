package httpapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/certtest"
	"cellserver/internal/wire/peer"
)

const (
	anyone   = "user default on nopass ~* +@all\n"
	app      = "user app on nopass ~api:a* +cl.check\n"
	checkAPI = "/v1/check/api?key="
)

// TestUsers: a token names the user, whose rights hold.
func TestUsers(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{users: anyone + app})
	get := func(path string, headers ...string) response {
		t.Helper()
		return h.send(t, "GET", path, "", headers...)
	}
	const header = "X-Cellserver-Token: " + token
	get(checkAPI+"acme").is(t, 200, "")
	get(checkAPI+"acme", header).is(t, 200, `"remaining":14`)
	get("/t/"+token+checkAPI+"acme").is(t, 200, `"remaining":13`)
	get(checkAPI+"bcme", header).is(t, 403, "no permissions to access")
	get("/v1/limits", header).is(t, 403, "no permissions to run the 'cl.limit|list' command")
	h.send(t, "POST", "/v1/refund", `{"limit":"api","key":"acme"}`, header).is(t, 403, "negative quantity")
	h.send(t, "POST", "/v1/check", `{"checks":[{"limit":"api","key":"acme"},{"limit":"api","key":"b"}]}`, header).is(t, 403, "no permissions")
	get(checkAPI+"acme", "Authorization: Bearer x").is(t, 200, "")
	for _, tt := range [][]string{
		{checkAPI + "acme", "X-Cellserver-Token: wrong"}, {checkAPI + "acme", "X-Cellserver-Token: "}, {checkAPI + "acme", header, header},
		{"/t/wrong" + checkAPI + "acme"}, {"/t/" + checkAPI + "acme"}, {"/t/" + token}, {"/t/wrong" + checkAPI + "acme", header},
	} {
		got := get(tt[0], tt[1:]...).is(t, 401, `"title":"Unauthorized"`).has(t, "WWW-Authenticate", "X-Cellserver-Token")
		if strings.Contains(got.body, token) || strings.Contains(got.body, "wrong") {
			t.Errorf("the token is repeated: %s", got.body)
		}
	}
	get("/t/"+token+checkAPI+"acme", "X-Cellserver-Token: wrong").is(t, 200, "") // the proxy's, not the visitor's
	get(checkAPI+"acme", header, "Origin: https://example.com", "Sec-Fetch-Site: cross-site", "Host: example.com").is(t, 200, "")
}

// TestPassword: without a token a default user with a password has no rights, and nothing of a body is read.
func TestPassword(t *testing.T) {
	t.Parallel()
	h := start(t, options{users: "user default on >pw ~* +@all\n" + app})
	h.send(t, "GET", checkAPI+"acme", "").is(t, 401, "/t/TOKEN/v1/")
	h.post(t, "check", `{"limit":"api","key":"a"}`).is(t, 401, "--http-tokens-file")
	for _, path := range []string{"/v1/check", "/v1/reset", "/v1/nosuch"} {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n")
		got, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatalf("%s, before its body is there: %v", path, err)
		}
		_ = got.Body.Close()
		if got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s, before its body is there: %s", path, got.Status)
		}
	}
	h.send(t, "GET", checkAPI+"acme", "", "X-Cellserver-Token: "+token).is(t, 404, "no such limit")
}

func TestProtectedMode(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{users: anyone + app, door: func(c *door.Config) {
		c.Admit = func(peer.Peer) string { return "DENIED protected mode" }
	}})
	h.send(t, "GET", checkAPI+"acme", "").is(t, 403, "DENIED protected mode")
	h.send(t, "GET", "/v1/openapi.json", "").is(t, 403, "DENIED")
	h.send(t, "GET", checkAPI+"acme", "", "X-Cellserver-Token: "+token).is(t, 200, "")
}

// TestBrowsers: requests that a page can make are refused.
func TestBrowsers(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{api: func(c *httpapi.Config) { c.AllowedHosts = []string{"cellserver", "proxy.example:8080"} }})
	for header, status := range map[string]int{
		"Origin: null": 403, "Origin: http://localhost:3000": 403, "Origin: ": 403,
		"Sec-Fetch-Site: cross-site": 403, "Sec-Fetch-Site: same-site": 403, "Sec-Fetch-Site: same-origin": 200, "Sec-Fetch-Site: none": 200,
		"Host: evil.example": 403, "Host: evil.example:6381": 403, "Host: 192.0.2.1": 403, "Host: localhost.evil.example": 403,
		"Host: localhost": 200, "Host: LOCALHOST:1": 200, "Host: 127.0.0.9:6381": 200, "Host: [::1]:6381": 200, "Host: [::1]": 200,
		"Host: cellserver": 200, "Host: CellServer:6381": 200, "Host: proxy.example:8080": 200, "Host: proxy.example:8081": 403,
	} {
		if got := h.send(t, "GET", checkAPI+"u&quantity=0", "", header); got.status != status {
			t.Errorf("%s: got %d: %s", header, got.status, got.body)
		}
	}
	other := withLimits(t, options{api: func(c *httpapi.Config) { c.BoundTo = &net.TCPAddr{IP: net.IPv4zero} }})
	other.send(t, "GET", checkAPI+"u", "", "Host: 192.0.2.1").is(t, 200, "")
	for _, host := range []string{"0.0.0.0", "0.0.0.0:6381", "[::]:6381", "[::ffff:0.0.0.0]"} {
		other.send(t, "GET", checkAPI+"u", "", "Host: "+host).is(t, 403, "is not allowed")
	}
	other.send(t, "GET", checkAPI+"u", "", "Host: evil.example").is(t, 403, "--http-allowed-hosts")
	for _, path := range []string{checkAPI + "u", "/v1/check", "/v1/limits", "/nosuch"} {
		got := h.send(t, "OPTIONS", path, "", "Access-Control-Request-Method: POST")
		if got.status != 405 && path != "/nosuch" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("OPTIONS %s: got %d, %v", path, got.status, got.header)
		}
	}
}

// TestMethodsAndPaths that there are not.
func TestMethodsAndPaths(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	for _, tt := range []struct {
		method, path, allow string
		status              int
	}{
		{"GET", "/v1/check", "POST", 405}, {"HEAD", "/v1/check", "POST", 405}, {"DELETE", "/v1/peek", "POST", 405}, {"PUT", "/v1/reserve", "POST", 405},
		{"POST", checkAPI + "u", "GET, HEAD", 405}, {"POST", "/v1/limits", "GET, HEAD", 405}, {"DELETE", "/v1/limits/api", "GET, HEAD", 405},
		{"GET", "/", "", 404}, {"GET", "/v1", "", 404}, {"GET", "/v1/", "", 404}, {"GET", "/v2/check/api", "", 404}, {"GET", "//v1/check/api", "", 404},
		{"GET", "/v1/check/", "", 404}, {"POST", "/v1/check/", "", 404}, {"POST", "/v1/bucket", "", 404}, {"GET", "/V1/limits", "", 404}, {"GET", "/t", "", 404},
	} {
		h.send(t, tt.method, tt.path, "").has(t, "Allow", tt.allow).is(t, tt.status, "")
	}
	h.send(t, "GET", "/v1/check?limit=api&key=u", "").is(t, 405, "takes POST, with a JSON body; GET /v1/check/LIMIT?key=")
	h.send(t, "POST", checkAPI+"u", "").is(t, 405, "takes GET and HEAD; POST /v1/check has the limit in its body")
	const body = `{"limit":"api","key":"u"}`
	h.send(t, "POST", "/v1/check?x=1", body).is(t, 400, "no query")
	h.send(t, "POST", "/v1/check", body, "Content-Type: application/json; charset=utf-8").is(t, 200, "")
	h.send(t, "POST", "/v1/check", body, "Content-Type: text/plain").is(t, 400, "Content-Type must be application/json")
	h.send(t, "POST", "/v1/check", body, "Content-Encoding: gzip").is(t, 400, "Content-Encoding")
}

// TestFailures of the server are 503 with the reason.
func TestFailures(t *testing.T) {
	t.Parallel()
	down := func(line string) func(*commands.Config) {
		return func(c *commands.Config) {
			on := storetest.NewRemote(shard.New())
			on.Fail(store.Failure{Line: line})
			c.Store = on
		}
	}
	for _, change := range []func(*commands.Config){down(storetest.LineDown), down("READONLY You can't write against a read only replica."), down("NOREPLICAS Not enough good replicas to write."), down("CLUSTERDOWN The cluster is down")} {
		h := start(t, options{engine: []func(*commands.Config){change}})
		got := h.post(t, "check", `{"key":"k","algorithm":"funnel","max_burst":1,"count":1,"period":1}`).is(t, 503, `"title":"Service Unavailable"`).has(t, "RateLimit", "")
		if counts := h.door.Stats.Counts(); counts.Of(door.Failed) != 1 {
			t.Errorf("not counted: %s", got.body)
		}
	}
	full := start(t, options{engine: []func(*commands.Config){func(c *commands.Config) { c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction) }}})
	full.post(t, "check", `{"key":"k","algorithm":"funnel","max_burst":1,"count":1,"period":1}`).is(t, 503, string(reply.ErrOOM[:3]))
}

// TestFull: one client too many is told, and its connection closed.
func TestFull(t *testing.T) {
	t.Parallel()
	h := start(t, options{server: func(c *server.Config) { c.Limits.MaxClients = 0 }})
	h.send(t, "GET", "/v1/limits", "").is(t, 503, "max number of clients")
	got := h.raw(t, "GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if !strings.Contains(got, "\r\nConnection: close\r\n") {
		t.Errorf("got %q", got)
	}
}

// raw sends bytes, and returns all until the server closes the connection.
func (h *harness) raw(t *testing.T, text string) string {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	go func() { _, _ = io.WriteString(nc, text) }()
	all, err := io.ReadAll(nc)
	if err != nil && len(all) == 0 {
		t.Fatal(err)
	}
	return string(all)
}

// TestOversized: headers and bodies that are too long, and input that is not a request, are refused.
func TestOversized(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	const end = "Host: localhost\r\nConnection: close\r\n\r\n"
	for _, tt := range []struct{ text, want string }{
		{"GET /v1/limits HTTP/1.1\r\nX: " + strings.Repeat("x", 15<<10) + "\r\n" + end, "HTTP/1.1 200 "},
		{"GET /v1/limits HTTP/1.1\r\nX: " + strings.Repeat("x", 17<<10) + "\r\n" + end, "HTTP/1.1 431 "},
		{"GET /v1/check/api?key=" + strings.Repeat("x", 17<<10) + " HTTP/1.1\r\n" + end, "HTTP/1.1 431 "},
		{"POST /v1/check HTTP/1.1\r\nContent-Length: 1000000000\r\n" + end + "{}", "HTTP/1.1 4"},
		{"POST /v1/check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + end + "x\r\n", "HTTP/1.1 400 "},
		{"POST /v1/check HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + end, "HTTP/1.1 400 "},
		{"GET /v1/limits HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		{"GET /v1/limits HTTP/1.0\r\n\r\n", "HTTP/1.0 403 "},
		{"CL.THROTTLE k 15 30 60\r\n\r\n", "HTTP/1.1 400 "},
	} {
		if strings.Contains(tt.text, "1000000000") {
			tt.text += strings.Repeat(" ", 65<<10)
		}
		if got := h.raw(t, tt.text); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%.60q: got %.200q", tt.text, got)
		}
	}
}

// TestOneConnection: requests that follow another are answered, in the version that they have.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	nc, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	const get = "GET /v1/check/api?key=u HTTP/1.1\r\nHost: localhost\r\n\r\n"
	if _, err := io.WriteString(nc, strings.Repeat(get, 17)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(nc)
	for i := range 17 {
		got, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if want := map[bool]int{true: 200, false: 429}[i < 16]; got.StatusCode != want {
			t.Errorf("%d: got %d: %s", i, got.StatusCode, text)
		}
	}
	counts := h.door.Stats.Counts()
	if counts.Of(door.Allowed) != 16 {
		t.Errorf("counted %+v", counts)
	}
}

// TestHTTP2 without TLS: requests of one connection at once, each by its own user.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{users: anyone + app})
	by := &http.Transport{Protocols: &http.Protocols{}}
	by.Protocols.SetUnencryptedHTTP2(true)
	defer by.CloseIdleConnections()
	failures := make(chan error)
	const n = 16
	for i := range n {
		go func() {
			key, status, header := "acme", 200, "X-Cellserver-Token: "+token
			if i%2 == 0 {
				key, status = "bcme", 403
			}
			got := h.sendBy(t, by, "GET", checkAPI+key, "", header)
			if got.status != status {
				failures <- fmt.Errorf("%s: got %d: %s", key, got.status, got.body)
				return
			}
			failures <- nil
		}()
	}
	for range n {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	h.sendBy(t, by, "GET", checkAPI+"acme", "").is(t, 200, `"remaining":7`)
	h.sendBy(t, by, "GET", checkAPI+"acme", "", "Host: evil.example").is(t, 403, "")
}

// TestCertificate names the user.
func TestCertificate(t *testing.T) {
	t.Parallel()
	o := options{users: anyone + app}
	h := newHarness(t, &o)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ca := certtest.NewCA(t)
	h.door = door.New(h.doorConfig(t, &o), httpapi.New(httpapi.Config{Limits: h.Config.NamedLimits, BoundTo: l.Addr()}))
	ended := make(chan error, 1)
	go func() {
		ended <- h.door.ServeTLS(l, &tls.Config{Certificates: []tls.Certificate{ca.Pair(t, "server")}, ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven, NextProtos: door.Protocols()})
	}()
	h.addr, h.resp = l.Addr().String(), h.Session()
	h.say(t, "CL.LIMIT SET api 15 30 60")
	for name, origin := range map[string]int{"app": 200, "": 403} {
		client := &tls.Config{RootCAs: ca.Pool}
		if name != "" {
			client.Certificates = []tls.Certificate{ca.Pair(t, name)}
		}
		by := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+h.addr+checkAPI+"acme", nil)
		r.Header.Set("Origin", "https://example.com")
		got, err := by.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if got.StatusCode != origin || got.ProtoMajor != 2 {
			t.Errorf("%q: got %s %s", name, got.Proto, got.Status)
		}
		by.CloseIdleConnections()
	}
	h.door.Shutdown(context.Background())
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

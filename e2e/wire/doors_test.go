package wire

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
	h2 "cellserver/internal/test/http2test"
)

const (
	goodToken = "0123456789abcdef"
	rateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
)

// speak opens a connection of HTTP/2.
func speak(t *testing.T, addr string) *h2.Conn {
	t.Helper()
	c, err := h2.Begin(harness.DialTCP(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dialH2 connects over TLS.
func dialH2(t *testing.T, addr string, ca *certtest.CA) net.Conn {
	t.Helper()
	nc := tls.Client(harness.DialTCP(t, addr), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", NextProtos: []string{"h2"}})
	if err := nc.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nc
}

// flood opens as many streams as a connection may have, with or without their end, and waits until the server
// has them.
func flood(t *testing.T, c *h2.Conn, fields string, flags byte) {
	t.Helper()
	var all []byte
	for range 250 {
		b, _ := c.Open(fields, flags)
		all = append(all, b...)
	}
	harness.Send(t, c, string(append(all, h2.Frame(h2.Ping, 0, 0, "12345678")...)))
	for {
		if r, err := c.Next(); err != nil {
			t.Fatal(err)
		} else if r.Kind == h2.Ping {
			return
		}
	}
}

// askHTTP returns the status of a check.
func askHTTP(t *testing.T, addr, token string) int {
	t.Helper()
	const body = `{"key": "k", "algorithm": "funnel", "max_burst": 1000, "count": 30, "period": "1m"}`
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/check", strings.NewReader(body))
	if token != "" {
		r.Header.Set("X-Cellserver-Token", token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// askGRPC reports whether a call is answered with a message.
func askGRPC(t *testing.T, addr, token string) bool {
	t.Helper()
	c := speak(t, addr)
	defer func() { _ = c.Close() }()
	var more []string
	if token != "" {
		more = []string{"authorization", "Bearer " + token}
	}
	const request = "\x0a\x01d\x12\x08\x0a\x06\x0a\x01a\x12\x01b" // domain d, and the entry a=b
	b, stream := c.Open(h2.GRPC(rateLimit, more...), 0)
	message := fmt.Sprintf("\x00\x00\x00\x00%c%s", len(request), request)
	harness.Send(t, c, string(append(b, h2.Frame(h2.Data, h2.EndStream, stream, message)...)))
	for answered := false; ; {
		r, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		answered = answered || r.Kind == h2.Data && len(r.Payload) > 5
		if r.Ends() || r.Kind == h2.Reset {
			return answered
		}
	}
}

// TestStalledStreams: a few connections whose bodies do not come keep nobody out, be they of strangers or of
// the user that all are without a password.
func TestStalledStreams(t *testing.T) {
	t.Parallel()
	tokens := harness.WriteFile(t, goodToken+" app\n")
	for name, users := range map[string]string{
		"strangers": "user default on >pw ~* +@all\nuser app on nopass ~* +@all\n",
		"known":     "user default on nopass ~* +@all\nuser app on nopass ~* +@all\n",
	} {
		p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--http-tokens-file", tokens,
			"--aclfile", harness.WriteFile(t, users), "--maxclients", "1000")
		for range 5 {
			flood(t, speak(t, p.HTTP), h2.Request("POST", "/v1/check", "content-length", "1000"), 0)
			flood(t, speak(t, p.GRPC), h2.GRPC(rateLimit), 0)
		}
		for i := range 8 {
			if status := askHTTP(t, p.HTTP, goodToken); status != http.StatusOK {
				t.Errorf("%s: try %d over HTTP: %d", name, i, status)
			}
			if !askGRPC(t, p.GRPC, goodToken) {
				t.Errorf("%s: try %d over gRPC", name, i)
			}
		}
	}
}

// TestWrongTokensKeepNobodyOut: strangers whose answers wait take no place of known users, also on a
// connection that they share, as that of a proxy.
func TestWrongTokensKeepNobodyOut(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--http-tokens-file", harness.WriteFile(t, goodToken+" default\n"),
		"--requirepass", "pw", "--maxclients", "1000")
	var shared *h2.Conn
	for range 5 {
		shared = speak(t, p.HTTP)
		flood(t, shared, h2.Request("GET", "/v1/limits", "x-cellserver-token", "0123456789abcdeX"), h2.EndStream)
	}
	for i := range 8 {
		if status := askHTTP(t, p.HTTP, goodToken); status != http.StatusOK {
			t.Errorf("try %d: %d", i, status)
		}
	}
	ends := func(stream uint32) {
		for {
			if r, err := shared.Next(); err != nil {
				t.Fatal(err)
			} else if r.Ends() && (stream == 0 || r.Stream == stream) {
				return
			}
		}
	}
	ends(0)
	ends(0) // a stream is free once that of another ends
	b, stream := shared.Open(h2.Request("GET", "/v1/limits", "x-cellserver-token", goodToken), h2.EndStream)
	harness.Send(t, shared, string(b))
	ends(stream)
}

// TestBodiesAreClientsMemory: unfinished bodies count in --maxmemory-clients, and who holds most is closed.
func TestBodiesAreClientsMemory(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--maxmemory-clients", fmt.Sprint(floodLimit))
	part := strings.Repeat("x", 15_000)
	ways := map[string]func() error{
		"HTTP/2": func() error {
			c := speak(t, p.HTTP)
			for range 40 {
				b, stream := c.Open(h2.Request("POST", "/v1/check", "content-length", "64000"), 0)
				for range 4 {
					b = append(b, h2.Frame(h2.Data, 0, stream, part)...)
				}
				if _, err := c.Write(b); err != nil {
					return err
				}
			}
			return nil
		},
		"HTTP/1": func() error {
			for range 40 {
				nc := harness.DialTCP(t, p.HTTP)
				_, err := io.WriteString(nc, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 64000\r\n\r\n"+strings.Repeat(part, 4))
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, fill := range ways {
		evicted := p.Metric(t, `cellserver_connections_closed_total{reason="memory"}`)
		p.Eventually(t, "close clients for bodies over "+name, func() bool {
			if p.Metric(t, `cellserver_connections_closed_total{reason="memory"}`) > evicted {
				return p.Metric(t, "cellserver_client_memory_bytes") <= floodLimit
			}
			for range 6 { // again, as bodies have ten seconds, also on a busy machine
				_ = fill() // fails once it is closed
			}
			return false
		})
		if status := askHTTP(t, p.HTTP, ""); status != http.StatusOK {
			t.Errorf("%s: then %d", name, status)
		}
	}
}

// TestFloodsOfFrames: a connection that resets more streams than it lets be answered is closed, and one that
// sends frames that ask nothing; over TLS, too.
func TestFloodsOfFrames(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	p := harness.StartServer(t, append(files.Flags(), "--http-addr", "127.0.0.1:0", "--http-tls-addr", "127.0.0.1:0",
		"--grpc-addr", "127.0.0.1:0", "--grpc-tls-addr", "127.0.0.1:0")...)
	dials := map[string]func() net.Conn{
		"HTTP":  func() net.Conn { return harness.DialTCP(t, p.HTTP) },
		"HTTPS": func() net.Conn { return dialH2(t, p.HTTPS, ca) },
		"gRPC":  func() net.Conn { return harness.DialTCP(t, p.GRPC) },
		"gRPCS": func() net.Conn { return dialH2(t, p.GRPCS, ca) },
	}
	for name, next := range map[string]func(c *h2.Conn) []byte{
		"resets": func(c *h2.Conn) []byte {
			b, stream := c.Open(h2.Request("GET", "/v1/limits"), h2.EndStream)
			return append(b, h2.Frame(h2.Reset, 0, stream, "\x00\x00\x00\x08")...)
		},
		"PING":     func(*h2.Conn) []byte { return h2.Frame(h2.Ping, 0, 0, "a flood.") },
		"SETTINGS": func(*h2.Conn) []byte { return h2.Frame(h2.Settings, 0, 0, "") },
	} {
		for door, dial := range dials {
			c, err := h2.Begin(dial())
			if err != nil {
				t.Fatal(err)
			}
			if c.Outlasts(func() []byte { return next(c) }) {
				t.Errorf("%s over %s: the connection is open", name, door)
			}
		}
	}
	if status := askHTTP(t, p.HTTP, ""); status != http.StatusOK {
		t.Errorf("then: %d", status)
	}
	if !askGRPC(t, p.GRPC, "") {
		t.Error("then gRPC does not answer")
	}
}

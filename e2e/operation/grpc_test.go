package operation

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cellserver/e2e/harness"
)

const (
	shouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	healthCheck     = "/grpc.health.v1.Health/Check"
	grpcToken       = "0123456789abcdef"
)

// framed returns a message with its prefix.
func framed(message string, compressed byte) string {
	return string(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(message)))) + message
}

// field is a field of a message, with bytes.
func field(number byte, b string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(b)))) + b
}

// entry is one of a descriptor.
func entry(key, value string) string { return field(1, field(1, key)+field(2, value)) }

// ofEmptyEntries is a message of 250 KB with a descriptor of 125,000 entries.
func ofEmptyEntries() string { return field(1, "d") + field(2, strings.Repeat("\x0a\x00", 125_000)) }

// gzipped is the same message in some 290 bytes, with its prefix.
func gzipped(t *testing.T, message string) string {
	t.Helper()
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = io.WriteString(w, message)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return framed(b.String(), 1)
}

// grpcClient calls the gRPC door over HTTP/2.
type grpcClient struct {
	http *http.Client
	url  string
}

func newGRPCClient(t *testing.T, p *harness.Process) *grpcClient {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &grpcClient{&http.Client{Transport: transport}, "http://" + p.GRPC}
}

// rpc is a call.
type rpc struct{ path, token, encoding, body string }

// call returns gRPC's status and the answer.
func (c *grpcClient) call(t *testing.T, r rpc) (status, answer string) {
	t.Helper()
	return c.send(t, r, strings.NewReader(r.body))
}

func (c *grpcClient) send(t *testing.T, r rpc, body io.Reader) (status, answer string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("Te", "trailers")
	if r.encoding != "" {
		q.Header.Set("Grpc-Encoding", r.encoding)
	}
	if r.token != "" {
		q.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := c.http.Do(q)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.Header.Get("Grpc-Status") + response.Trailer.Get("Grpc-Status"), string(text)
}

// startGRPC starts a server whose default user needs a password, with a token for it.
func startGRPC(t *testing.T, flags ...string) *harness.Process {
	t.Helper()
	file := harness.WriteFile(t, grpcToken+" default\n")
	return harness.StartServer(t, append([]string{"--grpc-addr", "127.0.0.1:0", "--http-tokens-file", file, "--requirepass", "pw"}, flags...)...)
}

// TestGRPCKnowsItsUserFirst: without a token a call is refused, whatever it has, and before that has arrived.
func TestGRPCKnowsItsUserFirst(t *testing.T) {
	t.Parallel()
	p := startGRPC(t)
	client := newGRPCClient(t, p)
	noRule := framed(field(1, "d")+field(2, entry("a", "1")), 0)
	for _, r := range []rpc{
		{body: noRule},
		{body: framed(field(1, "d"), 0)},
		{body: framed("\xff", 0)},
		{body: framed(ofEmptyEntries(), 0)},
		{body: gzipped(t, ofEmptyEntries()), encoding: "gzip"},
		{body: noRule, token: "another-than-the-one"},
	} {
		r.path = shouldRateLimit
		if status, _ := client.call(t, r); status != "16" {
			t.Errorf("%.40q: status %s", r.body, status)
		}
	}
	for _, r := range []rpc{{}, {encoding: "gzip"}, {token: "another-than-the-one"}} {
		r.path = shouldRateLimit
		body, never := io.Pipe()
		if status, _ := client.send(t, r, body); status != "16" {
			t.Errorf("a body that does not come: status %s", status)
		}
		_ = never.Close()
	}
	if status, answer := client.call(t, rpc{path: shouldRateLimit, token: grpcToken, body: noRule}); status != "0" || answer == "" {
		t.Errorf("with a token: status %s, %q", status, answer)
	}
}

// TestGRPCKnowsCertificates: a certificate of a user is as good as a token, and one of nobody is not.
func TestGRPCKnowsCertificates(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	acl := harness.WriteFile(t, "user default on >pw ~* +@all\nuser envoy on >pw ~rls:* +cl.quota\n")
	p := harness.StartServer(t, append(files.Flags(), "--grpc-tls-addr", "127.0.0.1:0",
		"--tls-client-ca", files.ClientCA, "--tls-auth-clients", "optional", "--aclfile", acl)...)
	for name, want := range map[string]string{"envoy": "0", "nobody": "16", "": "16"} {
		config := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
		if name != "" {
			config.Certificates = []tls.Certificate{ca.Pair(t, name)}
		}
		client := &grpcClient{newHTTPClient(t, config), "https://" + p.GRPCS}
		for _, descriptor := range []string{entry("a", "1"), entry("a", "1") + field(2, "\x08\x01\x10\x06")} {
			if status, _ := client.call(t, rpc{path: shouldRateLimit, body: framed(field(1, "d")+field(2, descriptor), 0)}); status != want {
				t.Errorf("%q: status %s, want %s", name, status, want)
			}
		}
	}
}

// TestGRPCIsNotCompressed, neither calls of known users nor those about the health.
func TestGRPCIsNotCompressed(t *testing.T) {
	t.Parallel()
	client := newGRPCClient(t, startGRPC(t))
	for _, r := range []rpc{
		{path: shouldRateLimit, token: grpcToken, body: gzipped(t, field(1, "d")+field(2, entry("a", "1")))},
		{path: healthCheck, body: gzipped(t, "")},
		{path: healthCheck, body: gzipped(t, field(1, strings.Repeat("x", 250_000)))},
	} {
		for _, encoding := range []string{"gzip", "deflate"} {
			r.encoding = encoding
			if status, _ := client.call(t, r); status != "12" {
				t.Errorf("%s by %s: status %s", r.path, encoding, status)
			}
		}
		r.encoding = ""
		if status, _ := client.call(t, r); status != "13" { // gRPC's INTERNAL for what no header announces
			t.Errorf("%s: status %s", r.path, status)
		}
	}
}

// TestGRPCHealthIsSmall: the health needs no token, and a message about it is small.
func TestGRPCHealthIsSmall(t *testing.T) {
	t.Parallel()
	client := newGRPCClient(t, startGRPC(t))
	for _, tt := range []struct{ message, want string }{
		{"", "0"},
		{field(1, strings.Repeat("x", 1021)), "5"}, // 1,024 bytes, of an unknown service
		{field(1, strings.Repeat("x", 1022)), "8"},
		{field(1, strings.Repeat("x", 60_000)), "8"},
	} {
		if status, _ := client.call(t, rpc{path: healthCheck, body: framed(tt.message, 0)}); status != tt.want {
			t.Errorf("%d bytes: status %s, want %s", len(tt.message), status, tt.want)
		}
	}
	if status, _ := client.call(t, rpc{path: "/grpc.health.v1.Health/Watch", body: framed(field(1, strings.Repeat("x", 1022)), 0)}); status != "8" {
		t.Errorf("Watch: status %s", status)
	}
}

// TestGRPCMessagesStaySmall: what is allocated for a message does not depend on what it would become.
func TestGRPCMessagesStaySmall(t *testing.T) {
	t.Parallel()
	p := startGRPC(t)
	client := newGRPCClient(t, p)
	allocated := func(what string, mostBytes float64, calls int, r rpc, want string) {
		before := p.Metric(t, "go_memstats_alloc_bytes_total")
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if status, _ := client.call(t, r); status != want {
					t.Errorf("%s: status %s, want %s", what, status, want)
				}
			})
		}
		all.Wait()
		if bytes := p.Metric(t, "go_memstats_alloc_bytes_total") - before; bytes > mostBytes {
			t.Errorf("%s: %.0f bytes were allocated, more than %.0f", what, bytes, mostBytes)
		}
	}
	// A metrics page takes some 2 MB; a call of 256 KiB four times as much while its buffer grows.
	allocated("without a token", 16<<20, 100, rpc{path: shouldRateLimit, encoding: "gzip", body: gzipped(t, ofEmptyEntries())}, "16")
	allocated("compressed", 16<<20, 100, rpc{path: shouldRateLimit, token: grpcToken, encoding: "gzip", body: gzipped(t, ofEmptyEntries())}, "12")
	allocated("the health", 16<<20, 100, rpc{path: healthCheck, encoding: "gzip", body: gzipped(t, field(1, strings.Repeat("x", 250_000)))}, "12")
	allocated("with a token", 20*(2<<20), 20, rpc{path: shouldRateLimit, token: grpcToken, body: framed(ofEmptyEntries(), 0)}, "3")
}

// TestGRPCBounds: a call has at most 128 descriptors and 128 entries in all.
func TestGRPCBounds(t *testing.T) {
	t.Parallel()
	client := newGRPCClient(t, startGRPC(t))
	one := entry("a", "1")
	for _, tt := range []struct{ descriptors, want string }{
		{strings.Repeat(field(2, one), 128), "0"},
		{strings.Repeat(field(2, one), 129), "3"},
		{strings.Repeat(field(2, one), 10_000), "3"},
		{field(2, strings.Repeat(one, 128)), "0"},
		{field(2, strings.Repeat(one, 129)), "3"},
		{strings.Repeat(field(2, one+one), 65), "3"},
		{field(2, entry("a", strings.Repeat("x", 200_000))), "0"},
		{field(2, entry("a", strings.Repeat("x", 300_000))), "8"},
	} {
		r := rpc{path: shouldRateLimit, token: grpcToken, body: framed(field(1, "d")+tt.descriptors, 0)}
		if status, _ := client.call(t, r); status != tt.want {
			t.Errorf("%d bytes: status %s, want %s", len(tt.descriptors), status, tt.want)
		}
	}
	two := framed(field(1, "d")+field(2, one), 0)
	if status, _ := client.call(t, rpc{path: shouldRateLimit, token: grpcToken, body: two + two}); status != "12" {
		t.Errorf("two messages: status %s", status)
	}
}

// TestGRPCCountsWhatIsNotUTF8: a call with such a value would pass if it failed. Its limit holds, and the
// metrics can be read.
func TestGRPCCountsWhatIsNotUTF8(t *testing.T) {
	t.Parallel()
	p := startGRPC(t, "--envoy-metadata", "--envoy-headers", "--top-keys-metric", "10")
	client := newGRPCClient(t, p)
	limit := field(2, "\x08\x01\x10\x06") // one a year
	for _, tt := range []struct {
		domain, key, value string
		over               bool
	}{
		{"d", "agent", "\xff\xfe", false},
		{"d", "agent", "\xff\xfe", true},
		{"d", "agent", "\xff", false},
		{"d", "agent\xff", "1", false},
		{"d\xff", "agent", "1", false},
		{"d\xff", "agent", "1", true},
	} {
		body := framed(field(1, tt.domain)+field(2, entry(tt.key, tt.value)+limit), 0)
		status, answer := client.call(t, rpc{path: shouldRateLimit, token: grpcToken, body: body})
		if over := strings.HasPrefix(answer[min(5, len(answer)):], "\x08\x02"); status != "0" || over != tt.over {
			t.Errorf("%+v: status %s, over the limit %t", tt, status, over)
		}
	}
	harness.Exchange(t, p.Dial(t), "AUTH pw\r\n*2\r\n$6\r\nEXISTS\r\n$23\r\nrls:year:1:d5:agent2:\xff\xfe\r\n", "+OK\r\n:1\r\n")
	if code, page := p.Fetch(t, "/metrics", ""); code != http.StatusOK || !strings.Contains(page, "agent_\ufffd") {
		t.Errorf("/metrics: status %d", code)
	}
}

// TestGRPCLogs: what grpc-go logs, which clients can cause without end, is not in the log.
func TestGRPCLogs(t *testing.T) {
	t.Setenv("GRPC_GO_LOG_SEVERITY_LEVEL", "info")
	t.Setenv("GRPC_GO_LOG_VERBOSITY_LEVEL", "99")
	p := startGRPC(t)
	harness.Exchange(t, harness.DialTCP(t, p.GRPC), "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 415 Unsupported Media Type\r\n")
	if status, _ := newGRPCClient(t, p).call(t, rpc{path: healthCheck, body: framed("", 0)}); status != "0" {
		t.Errorf("status %s", status)
	}
	for line := range strings.Lines(p.Log.String()) {
		if !strings.HasPrefix(line, `{"time":`) {
			t.Errorf("logged: %s", line)
		}
	}
}

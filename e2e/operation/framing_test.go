package operation

import (
	"io"
	"net"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// hidden is a request that only a server sees which finds the end of the one before elsewhere than a proxy.
const hidden = "GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"

// A body that is JSON for a door, and that the metrics address refuses.
const (
	body    = `{"key":"k","algorithm":"funnel","max_burst":15,"count":30,"period":"1m"}`
	chunked = "48\r\n" + body + "\r\n0\r\n\r\n"
)

// sendRaw returns all that comes for raw bytes until the server closes the connection.
func sendRaw(t *testing.T, addr, raw string) string {
	t.Helper()
	nc := harness.DialTCP(t, addr)
	harness.Send(t, nc, raw)
	got, err := io.ReadAll(nc)
	if err != nil && !isReset(err) {
		t.Errorf("%q: %v after %q", raw, err, got)
	}
	return string(got)
}

// isReset reports a connection that was closed while something was unread.
func isReset(err error) bool {
	_, isNet := err.(*net.OpError) //nolint:errorlint // patience wraps none
	return isNet && strings.Contains(err.Error(), "reset")
}

// TestDoubtfulFramingEndsTheConnection: what a proxy may take for another request is not executed, on every
// address that speaks HTTP/1.
func TestDoubtfulFramingEndsTheConnection(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0")
	const head = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
	for name, addr := range map[string]string{"HTTP": p.HTTP, "gRPC": p.GRPC, "metrics": p.Metrics} {
		for _, raw := range []string{
			head + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
			head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunked,
			head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
			head + "Content-Length: 72\r\nTransfer-Encoding: CHUNKED\r\nConnection: keep-alive\r\n\r\n" + chunked,
			head + "Transfer-Encoding: chunked\r\n\r\n48;a=b\r\n" + body + "\r\n0\r\nX: y\r\n\r\n",
			"GET /v1/limits HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			// What net/http would answer itself:
			"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
			// What net/http refuses:
			head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
			head + "Transfer-Encoding: identity\r\nContent-Length: 72\r\n\r\n" + body,
			head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked,
			head + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunked,
			head + "Transfer-Encoding: xchunked\r\nContent-Length: 72\r\n\r\n" + body,
			head + "Transfer-Encoding : chunked\r\n\r\n" + chunked,
			head + "Content-Length: 72\r\nContent-Length: 5\r\n\r\n" + body,
			head + "Content-Length: +72\r\n\r\n" + body,
			head + "Content-Length: 72, 72\r\n\r\n" + body,
			head + "Content-Length: 0x48\r\n\r\n" + body,
			head + "Content-Length: -1\r\n\r\n" + body,
			// Of HTTP/1.0, where net/http does not look at it:
			"POST /v1/check HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
			"POST /v1/check HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 72\r\n\r\n" + body,
		} {
			got := sendRaw(t, addr, raw+hidden)
			if n := strings.Count(got, "HTTP/1."); n != 1 {
				t.Errorf("%s, %q: %d answers: %q", name, raw, n, got)
			}
		}
		// A plain request leaves it open, but for gRPC's address.
		plain, want := head+"Content-Length: 72\r\n\r\n"+body, 2
		if name == "gRPC" {
			want = 1
		}
		got := sendRaw(t, addr, plain+strings.Replace(hidden, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		if n := strings.Count(got, "HTTP/1.1 "); n != want {
			t.Errorf("%s: %d answers to two requests: %q", name, n, got)
		}
	}
}

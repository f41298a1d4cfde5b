package door_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/edge/server"
)

// TestSlowRequests: a request line or header that does not end, and a body, end their connection in ten
// seconds, however much of them comes.
func TestSlowRequests(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":             "",
		"half a request line": "GET /v1/lim",
		"half a header":       "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"half a preface":      "PRI * HTTP",
		"half a body":         "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 64000\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			p := pipes{make(chan net.Conn), make(chan struct{})}
			d, on := serve(t, p, slowSession{&now, &most})
			theirs, ours := net.Pipe()
			p.ends <- ours
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			go func() {
				_, err := io.WriteString(theirs, request)
				for err == nil && strings.Contains(request, "\r\n") {
					time.Sleep(time.Second)
					_, err = io.WriteString(theirs, "x")
				}
			}()
			time.Sleep(9 * time.Second)
			synctest.Wait()
			if n := on.Stats().Connected; n != 1 {
				t.Errorf("%s: %d clients after 9 s", name, n)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if n := on.Stats().Connected; n != 0 {
				t.Errorf("%s: %d clients after 12 s", name, n)
			}
			_ = theirs.Close()
			d.Shutdown(t.Context())
			time.Sleep(2 * time.Second) // for the writer
		})
	}
}

// TestLargeHeaders are refused.
func TestLargeHeaders(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	nc := h.dial(t)
	send(t, nc, []byte("GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 17_000)+"\r\n\r\n"))
	if status := statusOf(t, nc); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(status)
	}
}

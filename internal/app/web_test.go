package app

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/clock"
)

// TestSlowRequests: a client that withholds an announced body does not keep one of the few connections for
// long.
func TestSlowRequests(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":        "",
		"half a header":  "GET / HTTP/1.1\r\nHost: local",
		"no body":        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"half a body":    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"no 2nd request": "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			w, err := newWebServer(&settings.Options{}, clock.New().Now, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			l, ended := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}, make(chan error, 1)
			go func() { ended <- w.Serve(l, http.NotFoundHandler()) }()
			nc, theirs := net.Pipe()
			l.conns <- theirs
			begin := time.Now()
			go func() { _, _ = io.WriteString(nc, request) }()
			if _, err := io.Copy(io.Discard, nc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("%s: the connection ended after %s", name, took)
			}
			_ = w.server.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("%s: the server ended with %v", name, err)
			}
		})
	}
}

// pipeListener accepts connections of a test.
func TestURL(t *testing.T) {
	for _, tt := range []struct {
		listens string
		certs   *certs.Keeper
		want    string
	}{
		{"127.0.0.1:9380", nil, "http://127.0.0.1:9380/"},
		{"127.0.0.1:9380", &certs.Keeper{}, "https://127.0.0.1:9380/"},
		{"192.0.2.7:1", nil, "http://192.0.2.7:1/"},
		{"0.0.0.0:9380", nil, "http://localhost:9380/"},
		{"[::]:9380", &certs.Keeper{}, "https://localhost:9380/"},
		{"[::1]:9380", nil, "http://[::1]:9380/"},
		{"[fe80::1%eth0]:9380", nil, "http://[fe80::1%25eth0]:9380/"},
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.listens))
		if got := (&webServer{Certs: tt.certs}).URL(addr); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.listens, got, tt.want)
		}
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// TestEverySessionIsClosedOnce: checkEnds counts, here while the server still runs.
func TestEverySessionIsClosedOnce(t *testing.T) {
	const short = 5 * time.Millisecond
	shutdown := func(t *testing.T, s *testServer, _ net.Conn) {
		ctx, cancel := context.WithTimeout(context.Background(), short)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	send := func(text string) func(*testing.T, *testServer, net.Conn) {
		return func(t *testing.T, _ *testServer, nc net.Conn) { write(t, nc, text) }
	}
	for _, tt := range []struct {
		name   string
		why    string // that is counted and logged
		change func(*Config)
		end    func(t *testing.T, s *testServer, nc net.Conn)
	}{
		{"the client closes", "client", nil, func(_ *testing.T, _ *testServer, nc net.Conn) { nc.Close() }},
		{"in the middle of a line", "client", nil, func(t *testing.T, _ *testServer, nc net.Conn) { write(t, nc, "half"); nc.Close() }},
		{"with replies unread", "client", nil, func(t *testing.T, _ *testServer, nc net.Conn) { write(t, nc, "long\nlong\n"); nc.Close() }},
		{"close", "session", nil, func(t *testing.T, _ *testServer, nc net.Conn) {
			write(t, nc, "close\n")
			ended(t, nc, "bye\n")
			nc.Close()
		}},
		{"abort", "session", nil, send("abort\n")},
		{"panic", "panic", nil, send("panic\n")},
		{"killed", "killed", nil, func(_ *testing.T, s *testServer, _ net.Conn) { s.all()[0].conn.Kill() }},
		{"killed while it waits", "killed", nil, func(t *testing.T, s *testServer, nc net.Conn) {
			write(t, nc, "b\nstay\n")
			expect(t, nc, "b\n")
			s.all()[0].conn.Kill()
		}},
		{"shutdown", "shutdown", nil, shutdown},
		{"shutdown that cuts it", "shutdown", nil, func(t *testing.T, s *testServer, nc net.Conn) {
			write(t, nc, "b\nstay\n")
			expect(t, nc, "b\n")
			shutdown(t, s, nc)
		}},
		{"killed and shut down", "", nil, func(t *testing.T, s *testServer, nc net.Conn) { s.all()[0].conn.Kill(); shutdown(t, s, nc) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachDriver(t, func(t *testing.T, start starter) {
				s := start(tt.change)
				nc := s.dial(t)
				ask(t, nc, "a\n", "a\n")
				tt.end(t, s, nc)
				s.awaitClients(t, 0)
				s.checkEnds(t)
				s.checkClosed(t, tt.why)
				for _, w := range s.all() { // neither has an effect any more
					w.conn.Kill()
					w.conn.Wake()
				}
			})
		})
	}
}

// TestKill ends connections from another goroutine, whatever they are about, and leaves nothing behind.
func TestKill(t *testing.T) {
	for _, tt := range []struct{ name, send, want string }{
		{"reading", "a\n", "a\n"},
		{"in the middle of a line", "a\nhalf", "a\n"},
		{"waiting", "a\nstay\n", "a\n"},
		{"executing without end", "a\nforever\n", "a\n"},
		{"blocked on output", "a\n" + strings.Repeat("long\n", 1000), "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachDriver(t, func(t *testing.T, start starter) {
				s := start(func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, 0 })
				before := runtime.NumGoroutine()
				nc := s.dial(t)
				ask(t, nc, tt.send, tt.want)
				other := s.dial(t)
				ask(t, other, "a\n", "a\n")
				s.all()[0].conn.Kill()
				s.all()[0].conn.Kill()
				s.awaitClients(t, 1)
				if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the client was not told")
				}
				ask(t, other, "b\n", "b\n")
				other.Close()
				s.awaitClients(t, 0)
				awaitGoroutines(t, before)
			})
		})
	}
}

func awaitGoroutines(t *testing.T, most int) {
	t.Helper()
	if !patience.Until(func() bool { return runtime.NumGoroutine() <= most }) {
		t.Fatalf("%d goroutines, want %d at most", runtime.NumGoroutine(), most)
	}
}

// TestAdmit: a refused client learns why, over TLS as well.
func TestAdmit(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		deny := true
		s := start(func(c *Config) {
			c.Admit = func(p peer.Peer) string {
				if p.Addr == "" || !deny {
					return ""
				}
				deny = false
				return "DENIED for a reason"
			}
		})
		denied := s.dial(t)
		ended(t, denied, "-DENIED for a reason\r\n")
		denied.Close()
		s.awaitClients(t, 0)
		ask(t, s.dial(t), "a\n", "a\n")
		if st := s.Stats(); st.Denied != 1 || st.Accepted != 1 || st.Refused != 0 || len(s.all()) != 1 {
			t.Errorf("got %+v, and %d sessions", st, len(s.all()))
		}
	})
}

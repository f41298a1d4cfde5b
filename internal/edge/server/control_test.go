package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// TestEverySessionIsClosedOnce runs checkEnds while the server still runs.
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
		why    string // counted and logged
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
				nc := s.greet(t)
				tt.end(t, s, nc)
				s.awaitClients(t, 0)
				s.checkEnds(t)
				s.checkClosed(t, tt.why)
				for _, w := range s.all() { // without effect
					w.conn.Kill()
					w.conn.Wake()
				}
			})
		})
	}
}

// TestKill ends connections in every state from another goroutine, and expects nothing to be left.
func TestKill(t *testing.T) {
	for _, tt := range []struct{ name, send, want string }{
		{"reading", "a\n", "a\n"},
		{"in the middle of a line", "a\nhalf", "a\n"},
		{"waiting", "a\nstay\n", "a\n"},
		{"executing without end", "a\nforever\n", "a\n"},
		{"blocked on output", "a\n" + strings.Repeat("long\n", 1000), "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachServer(t, func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, 0 }, func(t *testing.T, s *testServer) {
				before := runtime.NumGoroutine()
				nc := s.dial(t)
				ask(t, nc, tt.send, tt.want)
				other := s.greet(t)
				s.all()[0].conn.Kill()
				s.all()[0].conn.Kill()
				s.awaitClients(t, 1)
				if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection is still open")
				}
				ask(t, other, "b\n", "b\n")
				other.Close()
				s.awaitClients(t, 0)
				awaitGoroutines(t, before)
			})
		})
	}
}

func awaitGoroutines(t *testing.T, maxCount int) {
	t.Helper()
	if !patience.Until(func() bool { return runtime.NumGoroutine() <= maxCount }) {
		t.Fatalf("%d goroutines, want %d at most", runtime.NumGoroutine(), maxCount)
	}
}

// TestAdmit checks that a refused client gets the reason, over TLS as well.
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
		s.greet(t)
		if st := s.Stats(); st.Denied != 1 || st.Accepted != 1 || st.Refused != 0 || len(s.all()) != 1 {
			t.Errorf("got %+v, and %d sessions", st, len(s.all()))
		}
	})
}

// checkClosed expects the reason of the only connection's end to be counted and logged once.
func (s *testServer) checkClosed(t *testing.T, why string) {
	t.Helper()
	sum := uint64(0)
	for reason, n := range s.Stats().Closed {
		if sum += n; n > 0 && why != "" && reason != why {
			t.Errorf("the end is counted as %s, want %s", reason, why)
		}
	}
	log := s.log.String()
	lines := regexp.MustCompile(`(?m)level=DEBUG .*$`).FindAllString(log, -1)
	want := regexp.MustCompile(`"client disconnected" client=\S+ name=me tls=` + strconv.FormatBool(s.tls != nil) + ` reason=` + why +
		`\w* received_bytes=[1-9]\d* sent_bytes=[1-9]\d* age=\S+s$`)
	if sum != 1 || len(lines) != 1 || !want.MatchString(lines[0]) {
		t.Errorf("%d ends are counted, and the log has %q", sum, lines)
	}
}

func TestBytesAreCounted(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		one, two := s.dial(t), s.dial(t)
		ask(t, one, "0123456789\n", "0123456789\n")
		ask(t, two, "0123456789\n", "0123456789\n")
		one.Close()
		s.awaitClients(t, 1)
		const bytes = 2 * 11
		s.await(t, func(st Stats) bool {
			return s.tls == nil && st.Received == bytes && st.Sent == bytes || s.tls != nil && st.Received > 500 && st.Sent > 500
		})
	})
}

package server

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/wire/peer"
)

// onEachDriverInTime runs a test with either driver where only s.pass lets time pass: event loops get a clock
// that stands still, and goroutines run in a bubble over connections in memory.
func onEachDriverInTime(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	for _, network := range []string{"tcp", "unix"} {
		t.Run("loops/"+network, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("no event loops on this system")
			}
			test(t, func(change func(*Config)) *testServer {
				t.Helper()
				return startInTime(t, listen(t, network), change)
			})
		})
	}
	for _, secured := range []bool{false, true} {
		name, begin := "goroutines/plain", start
		if secured {
			name, begin = "goroutines/tls", startTLS
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func(change func(*Config)) *testServer {
					t.Helper()
					return inBubble(begin(t, 0, newPipeListener(), change))
				})
			})
		})
	}
}

// onEachServerInTime is onEachDriverInTime with one server.
func onEachServerInTime(t *testing.T, change func(*Config), test func(t *testing.T, s *testServer)) {
	t.Helper()
	onEachDriverInTime(t, func(t *testing.T, start starter) { test(t, start(change)) })
}

func inBubble(s *testServer) *testServer {
	s.pass = func(d time.Duration) {
		synctest.Wait()
		time.Sleep(d)
		synctest.Wait()
	}
	return s
}

func startInTime(t *testing.T, l net.Listener, change func(*Config)) *testServer {
	t.Helper()
	var clock atomic.Int64
	s := start(t, 1, l, func(c *Config) {
		c.Now = clock.Load
		if change != nil {
			change(c)
		}
	})
	settle := func() { // a loop answers before it looks at the time
		for range 2 {
			if err := s.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.pass = func(d time.Duration) {
		settle()
		clock.Add(int64(d))
		settle()
	}
	return s
}

// passUntilNone lets d pass, again and again, until no client is connected.
func (s *testServer) passUntilNone(d time.Duration) {
	for s.Stats().Connected > 0 {
		s.pass(d)
	}
}

func locked(c *Config) {
	c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session { return &echoes{conn: conn, locked: true} }
}

const timeout = 3 * time.Second

func TestIdleTimeout(t *testing.T) {
	onEachServerInTime(t, func(c *Config) { c.Limits.IdleTimeout = timeout }, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		for range 3 {
			ask(t, nc, "a\n", "a\n")
			s.pass(timeout - 1)
		}
		write(t, nc, "ha")
		s.pass(timeout - 1)
		ask(t, nc, "lf\n", "half\n")
		s.pass(timeout)
		ended(t, nc, "")
		s.checkReason(t, nc, "idle")
	})
}

// TestIdleTimeoutSparesMonitors checks that a client may be silent while it is in MONITOR.
func TestIdleTimeoutSparesMonitors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before time.Duration
	}{
		{"as it is", timeout},
		{"as it is set later", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachServerInTime(t, func(c *Config) { c.Limits.IdleTimeout = tt.before }, func(t *testing.T, s *testServer) {
				monitor, quiet := s.dial(t), s.dial(t)
				ask(t, monitor, "monitor\n", "monitor\n")
				ask(t, quiet, "a\n", "a\n")
				s.changeLimits(t, func(l *Limits) { l.IdleTimeout = timeout })
				s.pass(timeout)
				ended(t, quiet, "")
				ask(t, monitor, "b\n", "b\n")
				ask(t, monitor, "unmonitor\n", "unmonitor\n")
				s.pass(timeout)
				ended(t, monitor, "")
			})
		})
	}
}

// TestIdleTimeoutSparesWaiting checks this also after a client was blocked on output, and for a new limit.
func TestIdleTimeoutSparesWaiting(t *testing.T) {
	onEachServerInTime(t, func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.IdleTimeout = 1<<20, timeout }, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		write(t, nc, "slow\na\n")
		discard(t, nc, floodBytes)
		s.pass(2 * timeout)
		s.changeLimits(t, func(l *Limits) { l.IdleTimeout = timeout / 2 })
		s.pass(2 * timeout)
		s.all()[0].Session.(*echoes).release()
		expect(t, nc, "a\n")
		s.pass(timeout)
		ended(t, nc, "")
	})
}

// checkReason expects the end of the only connection, which the client now closes too, to have this reason.
func (s *testServer) checkReason(t *testing.T, nc net.Conn, reason string) {
	t.Helper()
	nc.Close()
	s.awaitClients(t, 0)
	s.checkEnds(t)
	s.checkClosed(t, reason)
}

func TestHandshakeTimeout(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) {
			c.Limits.HandshakeTimeout = timeout
			locked(c)
		})
		nc := s.greet(t)
		s.pass(timeout - 1)
		ask(t, nc, "a\n", "a\n")
		s.pass(1)
		ended(t, nc, "")
		s.checkReason(t, nc, "handshake")
	})
}

// TestLimitsChange checks that connected clients follow at once, silent ones too.
func TestLimitsChange(t *testing.T) {
	onEachServerInTime(t, func(c *Config) { c.Limits.IdleTimeout = time.Hour }, func(t *testing.T, s *testServer) {
		first := s.greet(t)
		s.changeLimits(t, func(l *Limits) { l.IdleTimeout = timeout })
		s.pass(timeout)
		ended(t, first, "")
		first.Close()
		s.awaitClients(t, 0)

		second := s.greet(t)
		s.changeLimits(t, func(l *Limits) { l.IdleTimeout, l.MaxClients = 0, 1 })
		s.pass(2 * timeout)
		ask(t, second, "b\n", "b\n")
		if got, _ := io.ReadAll(s.dial(t)); s.tls == nil && string(got) != "-ERR max number of clients reached\r\n" {
			t.Errorf("beyond the new limit a client got %q", got)
		}
	})
}

// TestRealTime checks an idle timeout by the real clock.
func TestRealTime(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		s.changeLimits(t, func(l *Limits) { l.IdleTimeout = 10 * time.Millisecond })
		ended(t, nc, "")
	})
}

func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	onEachServerInTime(t, func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, timeout }, func(t *testing.T, s *testServer) {
		s.dialAndNotRead(t)
		s.passUntilNone(timeout)
		s.checkEnds(t)
		s.checkClosed(t, "output")
		if log := s.log.String(); !strings.Contains(log, "does not read its replies") {
			t.Errorf("the log does not say why: %s", log)
		}
	})
}

func TestOutputTimeoutHoldsToTheEnd(t *testing.T) {
	onEachServerInTime(t, func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, timeout }, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		write(t, nc, "flood\nquit\nafter\n")
		discard(t, nc, floodBytes) // so the connection is unblocked
		s.passUntilNone(timeout)
		if fed := s.all()[0].lastFed(); !strings.HasSuffix(fed, "quit\n") {
			t.Errorf("fed %q after the end", fed)
		}
	})
}

// TestKillEndsALinger checks a linger that lasts, as no time passes.
func TestKillEndsALinger(t *testing.T) {
	onEachServerInTime(t, nil, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		ask(t, nc, "a\nclose\n", "a\nbye\n")
		s.pass(lingerTimeout - 1)
		if n := s.Stats().Connected; n != 1 {
			t.Errorf("%d clients while one lingers", n)
		}
		s.all()[0].conn.Kill()
		s.awaitClients(t, 0)
	})
}

func TestALingerEnds(t *testing.T) {
	onEachServerInTime(t, nil, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		ask(t, nc, "a\nclose\n", "a\nbye\n")
		s.passUntilNone(lingerTimeout)
		s.checkClosed(t, "session")
	})
}

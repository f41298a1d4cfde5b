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

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// onEachDriverInTime runs a test with either driver where time passes only when the test has it pass: event loops get
// a clock that stands still until then, and goroutines run in a bubble, over connections in memory.
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
	settle := func() { // a loop answers first and looks at the time then
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

// passUntilNone has as much time pass, again and again, until no client is connected.
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
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.IdleTimeout = timeout })
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
	})
}

// TestIdleTimeoutSparesWhoMonitors: who is there to be told things may be silent, for as long as that is so.
func TestIdleTimeoutSparesWhoMonitors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before time.Duration
	}{
		{"as it is", timeout},
		{"as it is set later", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachDriverInTime(t, func(t *testing.T, start starter) {
				s := start(func(c *Config) { c.Limits.IdleTimeout = tt.before })
				monitor, quiet := s.dial(t), s.dial(t)
				ask(t, monitor, "monitor\n", "monitor\n")
				ask(t, quiet, "a\n", "a\n")
				limits := s.Limits()
				limits.IdleTimeout = timeout
				s.SetLimits(limits)
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

// TestIdleTimeoutSparesWhoWaits: also one that was blocked on output before, and whatever is set meanwhile.
func TestIdleTimeoutSparesWhoWaits(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.IdleTimeout = 1<<20, timeout })
		nc := s.dial(t)
		write(t, nc, "slow\na\n")
		discard(t, nc, floodBytes)
		s.pass(2 * timeout)
		limits := s.Limits()
		limits.IdleTimeout = timeout / 2
		s.SetLimits(limits)
		s.pass(2 * timeout)
		s.all()[0].Session.(*echoes).release()
		expect(t, nc, "a\n")
		s.pass(timeout)
		ended(t, nc, "")
	})
}

func TestHandshakeTimeout(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) {
			c.Limits.HandshakeTimeout = timeout
			locked(c)
		})
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		s.pass(timeout - 1)
		ask(t, nc, "a\n", "a\n")
		s.pass(1)
		ended(t, nc, "")
	})
}

// TestLimitsChange: those who are connected follow at once, also while they are silent.
func TestLimitsChange(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.IdleTimeout = time.Hour })
		change := func(to func(*Limits)) {
			limits := s.Limits()
			to(&limits)
			s.SetLimits(limits)
			if got := s.Limits(); got != limits {
				t.Errorf("Limits() is %+v, want %+v", got, limits)
			}
		}
		first := s.dial(t)
		ask(t, first, "a\n", "a\n")
		change(func(l *Limits) { l.IdleTimeout = timeout })
		s.pass(timeout)
		ended(t, first, "")
		first.Close()
		s.awaitClients(t, 0)

		second := s.dial(t)
		ask(t, second, "a\n", "a\n")
		change(func(l *Limits) { l.IdleTimeout, l.MaxClients = 0, 1 })
		s.pass(2 * timeout)
		ask(t, second, "b\n", "b\n")
		if got, _ := io.ReadAll(s.dial(t)); s.tls == nil && string(got) != "-ERR max number of clients reached\r\n" {
			t.Errorf("beyond the new limit a client got %q", got)
		}
	})
}

// TestRealTime: without a hand on the clock, silence has an end, too.
func TestRealTime(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		limits := s.Limits()
		limits.IdleTimeout = 10 * time.Millisecond
		s.SetLimits(limits)
		ended(t, nc, "")
	})
}

func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, timeout })
		s.dialAndNotRead(t)
		s.passUntilNone(timeout)
		if log := s.log.String(); !strings.Contains(log, "does not read its replies") {
			t.Errorf("the log does not say why: %s", log)
		}
	})
}

func TestOutputTimeoutHoldsToTheEnd(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, timeout })
		nc := s.dial(t)
		write(t, nc, "flood\nquit\nafter\n")
		discard(t, nc, floodBytes) // so the connection is not blocked any more
		s.passUntilNone(timeout)
		if fed := s.all()[0].lastFed(); !strings.HasSuffix(fed, "quit\n") {
			t.Errorf("fed %q after the end", fed)
		}
	})
}

// TestReasonOfATimeout: the session is closed once, and the end is counted and logged as what it was.
func TestReasonOfATimeout(t *testing.T) {
	for _, tt := range []struct {
		reason string
		change func(*Config)
		send   string
	}{
		{"idle", func(c *Config) { c.Limits.IdleTimeout = timeout }, "half"},
		{"handshake", func(c *Config) { c.Limits.HandshakeTimeout = timeout; locked(c) }, "half"},
		{"output", func(c *Config) { c.Limits.MaxOutputBytes, c.Limits.OutputTimeout = 1<<20, timeout }, "flood\n"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onEachDriverInTime(t, func(t *testing.T, start starter) {
				s := start(tt.change)
				nc := s.dial(t)
				ask(t, nc, "a\n", "a\n")
				write(t, nc, tt.send)
				s.passUntilNone(timeout)
				s.checkEnds(t)
				s.checkClosed(t, tt.reason)
			})
		})
	}
}

// TestKillEndsALinger, which does not end by itself as long as no time passes.
func TestKillEndsALinger(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\nclose\n", "a\nbye\n")
		s.pass(conn.LingerTimeout - 1)
		if n := s.Stats().Connected; n != 1 {
			t.Errorf("%d clients while one lingers", n)
		}
		s.all()[0].conn.Kill()
		s.awaitClients(t, 0)
	})
}

func TestALingerEnds(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\nclose\n", "a\nbye\n")
		s.passUntilNone(conn.LingerTimeout)
		s.checkClosed(t, "session")
	})
}

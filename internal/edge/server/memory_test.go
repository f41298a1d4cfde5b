package server

import (
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"cellserver/internal/base/buffers"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// longHalf is a partial command, too long to stay half-sent.
var longHalf = strings.Repeat("x", halfSentBytes+1)

func withInputTimeout(c *Config) { c.Limits.InputTimeout = timeout }

// TestInputTimeout checks that the timeout counts from when a command became long, and anew for the next one.
func TestInputTimeout(t *testing.T) {
	onEachServerInTime(t, withInputTimeout, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		s.pass(1) // 0 means none
		for range 2 {
			write(t, nc, longHalf)
			s.pass(timeout - 1)
			write(t, nc, "x")
			s.pass(0)
			ask(t, nc, "\n", longHalf+"x\n")
		}
		write(t, nc, "a\n"+longHalf)
		expect(t, nc, "a\n")
		s.pass(timeout - 1)
		write(t, nc, "x")
		s.pass(1)
		ended(t, nc, "")
		s.awaitClients(t, 0)
		s.checkClosed(t, "input")
		if log := s.log.String(); strings.Count(log, "--input-timeout") != 1 {
			t.Errorf("the log does not say why once: %s", log)
		}
	})
}

// TestInputTimeoutSpares checks clients that are silent, have sent little, are in MONITOR, or wait.
func TestInputTimeoutSpares(t *testing.T) {
	onEachServerInTime(t, withInputTimeout, func(t *testing.T, s *testServer) {
		for _, tt := range []struct{ first, half string }{{"a\n", ""}, {"a\n", longHalf[1:]}, {"monitor\n", longHalf}} {
			nc := s.dial(t)
			ask(t, nc, tt.first+tt.half, tt.first)
			s.pass(2 * timeout)
			ask(t, nc, "\n", tt.half+"\n")
		}
		nc := s.greet(t)
		write(t, nc, "stay\n"+longHalf)
		s.pass(2 * timeout)
		all := s.all()
		all[len(all)-1].Session.(*echoes).release()
		s.pass(timeout - 1)
		ask(t, nc, "\n", longHalf+"\n")
	})
}

// TestInputTimeoutIsSettable checks a command that was half-sent before the change.
func TestInputTimeoutIsSettable(t *testing.T) {
	onEachServerInTime(t, nil, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		s.pass(1) // 0 means none
		write(t, nc, longHalf)
		s.pass(timeout / 2)
		s.changeLimits(t, func(l *Limits) { l.InputTimeout = timeout })
		s.pass(timeout / 2)
		ended(t, nc, "")
	})
}

// reported returns what the first session was told that its connection holds.
func (s *testServer) reported() (input, free, output int64) {
	e := s.all()[0].Session.(*echoes)
	return e.input.Load(), e.inputFree.Load(), e.output.Load()
}

func (s *testServer) awaitReported(t *testing.T, what string, cond func(input, free, output int64) bool) {
	t.Helper()
	if !patience.Until(func() bool { return cond(s.reported()) }) {
		input, free, output := s.reported()
		t.Fatalf("%s: got %d bytes of input, %d free, %d of output", what, input, free, output)
	}
}

// TestMemoryIsReported checks a half-sent command and unread replies, during and after.
func TestMemoryIsReported(t *testing.T) {
	onEachServer(t, func(c *Config) { c.Limits.MaxOutputBytes = floodBytes / 2 }, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		half := strings.Repeat("x", 1<<20)
		write(t, nc, half)
		s.awaitReported(t, "half-sent", func(input, free, _ int64) bool { return input == 1<<20 && input+free <= 2<<20 })
		ask(t, nc, "\n", half+"\n")
		s.awaitReported(t, "done", func(input, free, output int64) bool {
			return input == 0 && free <= 2*maxKeptInput && output == 0
		})
		write(t, nc, "flood\na\n")
		s.awaitReported(t, "unread", func(_, _, output int64) bool { return output > floodBytes/4 && output <= floodBytes+buffers.ChunkBytes })
		discard(t, nc, floodBytes)
		expect(t, nc, "a\n")
		s.awaitReported(t, "read", func(_, _, output int64) bool { return output == 0 })
	})
}

func TestEvict(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		s.greet(t)
		s.all()[0].conn.Evict()
		s.all()[0].conn.Evict()
		s.awaitClients(t, 0)
		s.checkClosed(t, "memory")
	})
}

func TestAddressesAreForgotten(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		for range 3 {
			s.greet(t).Close()
		}
		s.awaitClients(t, 0)
		s.addresses.mu.Lock()
		defer s.addresses.mu.Unlock()
		if s.addresses.byKey != nil {
			t.Errorf("without clients: got %v, want nil", s.addresses.byKey)
		}
	})
}

// TestGrowthWaitsForTheEvicted checks that a long command is not read on while an evicted connection has not
// ended.
func TestGrowthWaitsForTheEvicted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		hang, entered, release := hangOnce()
		s := start(hang)
		nc, hanging := s.greet(t), s.greet(t)
		write(t, hanging, "hang\n")
		<-entered
		s.all()[1].conn.Evict() // it cannot end yet
		write(t, nc, strings.Repeat("x", maxKeptInput))
		close(release)
		ask(t, nc, "y\n", strings.Repeat("x", maxKeptInput)+"y\n")
		s.greet(t)
		s.all()[2].conn.Evict()
		s.awaitClients(t, 1)
		ask(t, nc, strings.Repeat("x", maxKeptInput)+"y\n", strings.Repeat("x", maxKeptInput)+"y\n") // without a wait
	})
}

// TestLoopEvictsBetweenTurns checks that an evicted connection is closed before the next one in the same
// round, as all may grow.
func TestLoopEvictsBetweenTurns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no event loops on this system")
	}
	entered, goOn := make(chan struct{}), make(chan struct{})
	var s *testServer
	var closes atomic.Int32
	s = start(t, 1, listen(t, "tcp"), func(c *Config) {
		c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session {
			return &hooked{echoes{conn: conn}, func(line string) {
				switch line {
				case "evict":
					entered <- struct{}{}
					<-goOn
					s.all()[0].conn.Evict()
				case "look":
					closes.Store(s.all()[0].closes.Load())
				}
			}}
		}
	})
	all := []net.Conn{s.greet(t), s.greet(t), s.greet(t)}
	write(t, all[1], "evict\n")
	<-entered
	write(t, all[2], "look\n") // before the inbox is rung, so earlier in the next round
	close(goOn)
	expect(t, all[1], "evict\n")
	expect(t, all[2], "look\n")
	if closes.Load() != 1 {
		t.Errorf("the session was closed %d times when the next connection had its turn", closes.Load())
	}
	ended(t, all[0], "")
}

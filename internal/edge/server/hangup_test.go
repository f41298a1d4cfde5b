package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// waiting connects a client whose session waits with a line behind it.
func (s *testServer) waiting(t *testing.T) (net.Conn, *observed) {
	t.Helper()
	nc := s.dial(t)
	ask(t, nc, "a\nstay\nb\n", "a\n")
	all := s.all()
	w := all[len(all)-1]
	s.await(t, func(Stats) bool { return strings.HasSuffix(w.lastFed(), "stay\n") })
	return nc, w
}

func (w *observed) release() { w.Session.(*echoes).release() }

func (s *testServer) awaitHangup(t *testing.T, w *observed) {
	t.Helper()
	s.await(t, func(Stats) bool { return len(w.hungUp()) > 0 })
}

func (w *observed) expectHangups(t *testing.T, want ...peer.Hangup) {
	t.Helper()
	if got := w.hungUp(); !slices.Equal(got, want) {
		t.Errorf("the session was told %v, want %v", got, want)
	}
}

// counting counts clock readings, of which a loop makes one in each turn.
func counting(readings *atomic.Int64) func(*Config) {
	return func(c *Config) {
		now := c.Now
		c.Now = func() int64 { readings.Add(1); return now() }
	}
}

// expectRest expects only a few turns of a loop, and none of the session, for a while.
func expectRest(t *testing.T, w *observed, readings *atomic.Int64) {
	t.Helper()
	const few = 20
	feeds, turns := w.feeds.Load(), readings.Load()
	time.Sleep(10 * time.Millisecond)
	if more := w.feeds.Load() - feeds; more > 0 {
		t.Errorf("the session was fed %d times while it waited", more)
	}
	if more := readings.Load() - turns; more > few {
		t.Errorf("the clock was read %d times while there was nothing to do", more)
	}
}

// TestHalfCloseWhileWaiting checks that the session is told once, and that everything sent before is executed
// and answered.
func TestHalfCloseWhileWaiting(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		var readings atomic.Int64
		s := start(counting(&readings))
		nc, w := s.waiting(t)
		write(t, nc, "c\nwait\nd\n")
		w.expectHangups(t)
		closeWrite(t, nc)
		s.awaitHangup(t, w)
		expectRest(t, w, &readings)
		w.release()
		ended(t, nc, "b\nc\nd\n")
		s.awaitClients(t, 0)
		w.expectHangups(t, peer.HalfClosed)
		s.checkClosed(t, "client")
	})
}

// TestHalfCloseBeforeTheWait sends the FIN together with the command that waits.
func TestHalfCloseBeforeTheWait(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		write(t, nc, "stay\nb\n")
		closeWrite(t, nc)
		w := s.all()[0]
		s.awaitHangup(t, w)
		w.release()
		ended(t, nc, "b\n")
		s.awaitClients(t, 0)
		w.expectHangups(t, peer.HalfClosed)
	})
}

// reset makes the client's system reset the connection. A unix socket's is reset if something is unread.
func (s *testServer) reset(t *testing.T, nc net.Conn) {
	t.Helper()
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn()
	}
	if waiting, ok := nc.(patience.Conn); ok {
		nc = waiting.Conn
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			t.Fatal(err)
		}
	}
	nc.Close()
}

// TestResetWhileWaiting checks that the session is told once, that everything sent before is executed, and
// that nothing is left.
func TestResetWhileWaiting(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		var readings atomic.Int64
		s := start(func(c *Config) {
			counting(&readings)(c)
			c.Limits.MaxOutputBytes = 1000
		})
		s.greet(t)
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		nc := s.dial(t)
		write(t, nc, "a\nstay\nlong\nwait\nb\n") // "a" stays unread
		s.await(t, func(Stats) bool { return len(s.all()) == 2 && strings.HasSuffix(s.all()[1].lastFed(), "stay\n") })
		w := s.all()[1]
		s.reset(t, nc)
		s.awaitHangup(t, w)
		expectRest(t, w, &readings)
		w.release()
		s.awaitClients(t, 1)
		w.expectHangups(t, peer.Reset)
		if fed := w.lastFed(); !strings.HasSuffix(fed, "long\nwait\nb\n") {
			t.Errorf("fed %q", fed)
		}
		awaitGoroutines(t, goroutines)
		s.await(t, func(Stats) bool { return openFiles(t) <= files })
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // no such list on this system
	}
	return len(files)
}

// TestResetAfterAHalfClose checks event loops on a unix socket, where a reset behind a FIN is visible.
func TestResetAfterAHalfClose(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has no event loops")
	}
	s := start(t, 1, listen(t, "unix"), nil)
	nc, w := s.waiting(t)
	closeWrite(t, nc)
	s.awaitHangup(t, w)
	nc.Close()
	s.await(t, func(Stats) bool { return len(w.hungUp()) == 2 })
	w.expectHangups(t, peer.HalfClosed, peer.Reset)
	w.release()
	s.awaitClients(t, 0)
}

// TestBlockedClientIsReset checks that unread replies are dropped and the session goes on.
func TestBlockedClientIsReset(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		if runtime.GOOS != "linux" {
			t.Skip("has no event loops")
		}
		s := start(t, 1, listen(t, network), func(c *Config) { c.Limits.MaxOutputBytes = 1 << 20 })
		nc := s.dial(t)
		write(t, nc, "slow\nlast\n")
		expect(t, nc, "x")
		s.reset(t, nc)
		w := s.all()[0]
		s.awaitHangup(t, w)
		w.release()
		s.awaitClients(t, 0)
		w.expectHangups(t, peer.Reset)
		if fed := w.lastFed(); fed != "slow\nlast\n" {
			t.Errorf("fed %q", fed)
		}
	}
}

// TestBlockedClientHalfCloses checks that a loop does not spin on a FIN of a client that was woken while its
// replies were unread.
func TestBlockedClientHalfCloses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has no event loops")
	}
	var readings atomic.Int64
	s := start(t, 1, listen(t, "tcp"), func(c *Config) {
		counting(&readings)(c)
		c.Limits.MaxOutputBytes = 1 << 20
	})
	nc := s.dial(t)
	ask(t, nc, "slow\n", "x")
	w := s.all()[0]
	w.release()
	if err := s.Probe(t.Context()); err != nil { // the wake-up was handled
		t.Fatal(err)
	}
	closeWrite(t, nc)
	expectRest(t, w, &readings)
	w.expectHangups(t)
}

// onHangup is a session that reacts to a hangup.
type onHangup struct {
	*echoes
	do func(*echoes)
}

func (s onHangup) HungUp(peer.Hangup) { s.do(s.echoes) }

func withHangup(do func(*echoes)) func(*Config) {
	return func(c *Config) {
		c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session { return onHangup{&echoes{conn: conn}, do} }
	}
}

func TestSessionWakesAtAHangup(t *testing.T) {
	onEachServer(t, withHangup((*echoes).release), func(t *testing.T, s *testServer) {
		for i, end := range []func(net.Conn){
			func(nc net.Conn) { s.reset(t, nc) },
			func(nc net.Conn) { closeWrite(t, nc); ended(t, nc, "b\n") },
		} {
			nc, w := s.waiting(t)
			end(nc)
			s.awaitClients(t, 0)
			if len(w.hungUp()) != 1 || !strings.HasSuffix(w.lastFed(), "b\n") {
				t.Errorf("%d: was told %v, and fed %q", i, w.hungUp(), w.lastFed())
			}
		}
	})
}

func TestAPanicAtAHangup(t *testing.T) {
	onEachServer(t, withHangup(func(*echoes) { panic("the session broke") }), func(t *testing.T, s *testServer) {
		nc, _ := s.waiting(t)
		s.reset(t, nc)
		s.awaitClients(t, 0)
		s.checkClosed(t, "panic")
	})
}

// TestInputIsBoundedWhileWaiting checks that a goroutine reads on meanwhile, up to a bound.
func TestInputIsBoundedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(start(t, 0, newPipeListener(), nil))
		nc, w := s.waiting(t)
		const lines, each = 300, 1000
		var sent atomic.Int64
		go func() {
			line := strings.Repeat("y", each-1) + "\n"
			for range lines {
				if _, err := io.WriteString(nc, line); err != nil {
					return
				}
				sent.Add(each)
			}
		}()
		s.pass(0)
		if n := sent.Load(); n < maxKeptInput-2*each || n > maxKeptInput {
			t.Errorf("%d bytes were read, want about %d", n, maxKeptInput)
		}
		feeds := w.feeds.Load()
		s.pass(time.Hour)
		if n := w.feeds.Load(); n != feeds {
			t.Errorf("fed %d times while it waited", n-feeds)
		}
		w.release()
		expect(t, nc, "b\n")
		discard(t, nc, lines*each)
	})
}

// TestShutdownWhileWaiting checks that the session finishes and its replies are sent, also after a FIN.
func TestShutdownWhileWaiting(t *testing.T) {
	for _, half := range []bool{false, true} {
		t.Run(fmt.Sprint("half-closed=", half), func(t *testing.T) {
			onEachServer(t, nil, func(t *testing.T, s *testServer) {
				nc, w := s.waiting(t)
				if half {
					closeWrite(t, nc)
					s.awaitHangup(t, w)
				}
				result := make(chan error, 1)
				go func() { result <- s.Shutdown(t.Context()) }()
				for !s.isClosing() {
					runtime.Gosched()
				}
				w.release()
				ended(t, nc, "b\n")
				nc.Close()
				if err := <-result; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/command"
)

// echoes is a session that takes lines: it replies to each with itself, but for the few that it knows.
type echoes struct {
	wake    func()
	waiting atomic.Bool
	locked  bool // not authenticated
}

func (e *echoes) Authenticated() bool { return !e.locked }

func (e *echoes) Feed(in, out []byte) (consumed int, replies []byte, status command.Status) {
	if e.waiting.Load() {
		return 0, out, command.Waiting
	}
	line, _, ok := bytes.Cut(in, []byte("\n"))
	if !ok {
		return 0, out, command.NeedInput
	}
	n := len(line) + 1
	switch text := string(line); {
	case text == "panic":
		panic("the session broke")
	case text == "close":
		return n, append(out, "bye\n"...), command.Close
	case text == "forever":
		return 0, out, command.More
	case text == "abort":
		return n, append(out, "never seen\n"...), command.Abort
	case text == "wait":
		e.waiting.Store(true)
		go func() {
			time.Sleep(time.Millisecond)
			e.waiting.Store(false)
			e.wake()
		}()
		return n, out, command.Waiting
	case strings.HasPrefix(text, "long"):
		return n, append(out, strings.Repeat("x", 100_000)...), command.More
	default:
		return n, append(append(out, line...), '\n'), command.More
	}
}

type testServer struct {
	*Server
	network, addr string
	log           *lockedBuffer
	done          chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, ioThreads int, l net.Listener, change func(*Config)) *testServer {
	t.Helper()
	s := &testServer{network: l.Addr().Network(), addr: l.Addr().String(), log: &lockedBuffer{}, done: make(chan error, 1)}
	c := Config{
		NewSession:     func(_ command.Peer, wake func()) Session { return &echoes{wake: wake} },
		IOThreads:      ioThreads,
		MaxClients:     100,
		MaxOutputBytes: 32 << 20,
		OutputTimeout:  time.Minute,
		Log:            slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	s.Server = New(c)
	go func() { s.done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-s.done; !errors.Is(err, ErrClosed) {
			t.Errorf("Serve: got %v, want ErrClosed", err)
		}
	})
	return s
}

// starter starts a server on a TCP port or a unix socket, with one of the drivers.
type starter func(change func(*Config)) *testServer

// onEachDriver runs a test with a goroutine a connection, and with event loops; over TCP and over a unix socket.
func onEachDriver(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	for _, network := range []string{"tcp", "unix"} {
		for _, ioThreads := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s/io-threads=%d", network, ioThreads), func(t *testing.T) {
				test(t, func(change func(*Config)) *testServer {
					t.Helper()
					return start(t, ioThreads, listen(t, network), change)
				})
			})
		}
	}
}

func listen(t *testing.T, network string) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s") // short: a path may have 108 bytes
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *testServer) dial(t *testing.T) net.Conn {
	t.Helper()
	nc, err := net.Dial(s.network, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// dialAndNotRead connects a client that asks for 100 MB and never reads it.
func (s *testServer) dialAndNotRead(t *testing.T) {
	t.Helper()
	nc := s.dial(t)
	ask(t, nc, "a\n", "a\n")
	if _, err := io.WriteString(nc, strings.Repeat("long\n", 1000)); err != nil {
		t.Fatal(err)
	}
}

func (s *testServer) awaitClients(t *testing.T, most int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); s.Stats().Connected > most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d clients are still connected", s.Stats().Connected)
		}
	}
}

// ask sends and expects an exact answer.
func ask(t *testing.T, nc net.Conn, send, want string) {
	t.Helper()
	write(t, nc, send)
	expect(t, nc, want)
}

func write(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func expect(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// ended expects the rest of a connection, and then its end.
func ended(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	got, err := io.ReadAll(nc)
	if err != nil || string(got) != want {
		t.Errorf("at the end: got %q, %v, want %q", got, err, want)
	}
}

func TestRepliesKeepTheirOrderThroughAWait(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		ask(t, s.dial(t), "a\nwait\nb\nwait\nwait\nc\n", "a\nb\nc\n")
	})
}

func TestCloseSendsTheRepliesFirst(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\nclose\nb\n"+strings.Repeat("more that nobody reads\n", 100_000), "a\nbye\n")
		ended(t, nc, "")
	})
}

func TestAbortSendsNothing(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		if _, err := io.WriteString(nc, "abort\n"); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(nc); len(got) != 0 {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

func TestHalfClosedClientGetsItsReplies(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		if _, err := io.WriteString(nc, strings.Repeat("long\n", 300)); err != nil {
			t.Fatal(err)
		}
		if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, nc); n != 300*100_000 || err != nil {
			t.Errorf("got %d bytes, %v, want %d", n, err, 300*100_000)
		}
	})
}

func TestAPanicEndsItsConnectionAndNothingElse(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		other, broken := s.dial(t), s.dial(t)
		ask(t, other, "before\n", "before\n")
		ask(t, broken, "a\n", "a\n")
		if _, err := io.WriteString(broken, "panic\n"); err != nil {
			t.Fatal(err)
		}
		ended(t, broken, "")
		ask(t, other, "after\n", "after\n")
		if n := s.Stats().Panics; n != 1 {
			t.Errorf("%d panics counted, want 1", n)
		}
		if log := s.log.String(); !strings.Contains(log, "the session broke") || !strings.Contains(log, "server_test.go") {
			t.Errorf("the log has no panic with its stack: %s", log)
		}
	})
}

func TestMaxClients(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.MaxClients = 2 })
		first, second := s.dial(t), s.dial(t)
		ask(t, first, "a\n", "a\n")
		ask(t, second, "a\n", "a\n")
		ended(t, s.dial(t), "-ERR max number of clients reached\r\n")
		first.Close()
		s.awaitClients(t, 1)
		ask(t, s.dial(t), "a\n", "a\n")
		if st := s.Stats(); st.Refused != 1 || st.Accepted != 3 {
			t.Errorf("got %+v", st)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.IdleTimeout = 50 * time.Millisecond })
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		ended(t, nc, "")
	})
}

func TestHandshakeTimeout(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) {
			c.HandshakeTimeout = 50 * time.Millisecond
			c.NewSession = func(_ command.Peer, wake func()) Session { return &echoes{wake: wake, locked: true} }
		})
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		ended(t, nc, "")
	})
}

func TestUnauthenticatedClientMayNotLeaveRepliesUnread(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) {
			c.NewSession = func(_ command.Peer, wake func()) Session { return &echoes{wake: wake, locked: true} }
		})
		s.dialAndNotRead(t)
		s.awaitClients(t, 0)
	})
}

func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.MaxOutputBytes, c.OutputTimeout = 1<<20, 100*time.Millisecond })
		s.dialAndNotRead(t)
		s.awaitClients(t, 0)
		if log := s.log.String(); !strings.Contains(log, "does not read its replies") {
			t.Errorf("the log does not say why: %s", log)
		}
	})
}

func TestClientThatReadsInTimeGetsAll(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.MaxOutputBytes = 1 << 20 })
		nc := s.dial(t)
		go func() { _, _ = io.WriteString(nc, strings.Repeat("long\n", 1000)+"close\n") }()
		time.Sleep(50 * time.Millisecond)
		if n, err := io.Copy(io.Discard, nc); n != 1000*100_000+4 || err != nil {
			t.Errorf("got %d bytes, %v", n, err)
		}
	})
}

func TestShutdownFinishesWhatHasBeenRead(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		idle, busy := s.dial(t), s.dial(t)
		ask(t, idle, "a\n", "a\n")
		ask(t, busy, strings.Repeat("wait\n", 20)+"a\n", "a\n")
		if _, err := io.WriteString(busy, strings.Repeat("wait\nb\n", 20)); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(busy)
		if line, err := reader.ReadString('\n'); line != "b\n" || err != nil {
			t.Fatalf("got %q, %v", line, err)
		}
		result := make(chan error, 1)
		go func() { result <- s.Shutdown(context.Background()) }()
		rest, err := io.ReadAll(reader)
		if string(rest) != strings.Repeat("b\n", 19) || err != nil {
			t.Errorf("got %q, %v, want the 19 replies that were left", rest, err)
		}
		ended(t, idle, "")
		busy.Close()
		idle.Close()
		if err := <-result; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if nc, err := net.Dial(s.network, s.addr); err == nil {
			nc.Close()
			t.Error("the port still accepts connections")
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		s.dialAndNotRead(t)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if n := s.Stats().Connected; n != 0 {
			t.Errorf("%d clients left", n)
		}
	})
}

func TestShutdownEndsASessionThatNeverStops(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\nforever\n", "a\n")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
	})
}

func TestShutdownDoesNotCutALinger(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		if _, err := io.WriteString(nc, "a\n"+strings.Repeat("long\n", 20)+"close\n"); err != nil {
			t.Fatal(err)
		}
		ask(t, nc, "", "a\n")
		result := make(chan error, 1)
		go func() { result <- s.Shutdown(context.Background()) }()
		time.Sleep(20 * time.Millisecond)
		_, _ = io.WriteString(nc, "unread\n")
		if n, err := io.Copy(io.Discard, nc); n != 20*100_000+4 || err != nil {
			t.Errorf("got %d bytes, %v", n, err)
		}
		nc.Close()
		if err := <-result; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/test/patience"
)

func TestRepliesKeepTheirOrderThroughAWait(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		ask(t, s.dial(t), "a\nwait\nb\nwait\nwait\nc\n", "a\nb\nc\n")
	})
}

func TestCloseSendsTheRepliesFirst(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		ask(t, nc, "a\nclose\nb\n"+strings.Repeat("more that nobody reads\n", 100_000), "a\nbye\n")
		ended(t, nc, "")
	})
}

func TestAbortSendsNothing(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.greet(t)
		write(t, nc, "abort\n")
		if got, _ := io.ReadAll(nc); len(got) != 0 {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

func TestHalfClosedClientGetsItsReplies(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		write(t, nc, strings.Repeat("long\n", 100))
		closeWrite(t, nc)
		if n, err := io.Copy(io.Discard, nc); n != 100*100_000 || err != nil {
			t.Errorf("got %d bytes, %v, want %d", n, err, 100*100_000)
		}
	})
}

func TestAPanicEndsItsConnectionAndNothingElse(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		other, broken := s.dial(t), s.dial(t)
		ask(t, other, "before\n", "before\n")
		ask(t, broken, "a\n", "a\n")
		write(t, broken, "panic\n")
		ended(t, broken, "")
		ask(t, other, "after\n", "after\n")
		if n := s.Stats().Panics; n != 1 {
			t.Errorf("%d panics counted, want 1", n)
		}
		if log := s.log.String(); !strings.Contains(log, "the session broke") || !strings.Contains(log, "(*echoes).Feed") {
			t.Errorf("the log has no panic with its stack: %s", log)
		}
	})
}

// TestMaxClients checks both maxima: a client too many is refused, with a reason where one can be sent, until
// another leaves.
func TestMaxClients(t *testing.T) {
	for _, tt := range []struct {
		limits     Limits
		reason     string
		refused    uint64
		perAddress uint64
	}{
		{Limits{MaxClients: 2}, "clients", 1, 0},
		{Limits{MaxClients: 100, MaxClientsPerAddress: 2}, "clients per address", 0, 1},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			onEachDriver(t, func(t *testing.T, start starter) {
				s := start(func(c *Config) {
					c.Limits.MaxClients, c.Limits.MaxClientsPerAddress = tt.limits.MaxClients, tt.limits.MaxClientsPerAddress
				})
				first := s.greet(t)
				s.greet(t)
				if s.network == "unix" && tt.limits.MaxClientsPerAddress > 0 {
					s.greet(t) // has no address
					return
				}
				third, refusal := s.dialRaw(t), "-ERR max number of "+tt.reason+" reached\r\n"
				if s.tls != nil {
					refusal = ""
				}
				ended(t, third, refusal)
				if st := s.Stats(); st.Refused != tt.refused || st.RefusedAddresses != tt.perAddress || st.Connected != 2 {
					t.Errorf("got %+v", st)
				}
				first.Close()
				s.awaitClients(t, 1)
				s.greet(t)
				if n := strings.Count(s.log.String(), "maximum number of "+tt.reason+" reached"); n != 1 || s.Stats().Accepted != 3 {
					t.Errorf("got %d log lines, want 1: %s; %+v", n, s.log, s.Stats())
				}
			})
		})
	}
}

func TestUnauthenticatedClientMayNotLeaveRepliesUnread(t *testing.T) {
	onEachServer(t, locked, func(t *testing.T, s *testServer) {
		s.dialAndNotRead(t)
		s.awaitClients(t, 0)
	})
}

func TestShutdownFinishesWhatHasBeenRead(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		idle, busy := s.dial(t), s.dial(t)
		ask(t, idle, "a\n", "a\n")
		ask(t, busy, strings.Repeat("wait\n", 20)+"a\n", "a\n")
		write(t, busy, strings.Repeat("wait\nb\n", 20))
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
	for _, tt := range []struct{ name, send string }{
		{"replies unread", strings.Repeat("long\n", 500)},
		{"a session that never stops", "forever\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachServer(t, nil, func(t *testing.T, s *testServer) {
				nc := s.dial(t)
				ask(t, nc, "a\n"+tt.send, "a\n") // all of it is read
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
				defer cancel()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want DeadlineExceeded", err)
				}
				s.awaitClients(t, 0)
			})
		})
	}
}

func TestShutdownDoesNotCutALinger(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		if !patience.Until(func() bool { return readsWhileItLingers(t, start(nil)) }) {
			t.Error("the machine is too busy for a linger")
		}
	})
}

// readsWhileItLingers expects all replies, unless it takes longer than a linger, behind which input is reset.
func readsWhileItLingers(t *testing.T, s *testServer) (inTime bool) {
	t.Helper()
	nc, began := s.dial(t), time.Now()
	write(t, nc, "a\n"+strings.Repeat("long\n", 20)+"close\n")
	ask(t, nc, "", "a\n")
	result := make(chan error, 1)
	go func() { result <- s.Shutdown(context.Background()) }()
	time.Sleep(20 * time.Millisecond)
	_, _ = io.WriteString(nc, "unread\n")
	n, err := io.Copy(io.Discard, nc)
	whole := n == 20*100_000+4 && err == nil
	if inTime = time.Since(began) < lingerTimeout; inTime && !whole {
		t.Errorf("got %d bytes, %v", n, err)
	}
	nc.Close()
	if err := <-result; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	return inTime || whole
}

func TestNothingIsFedAfterClose(t *testing.T) {
	onEachServer(t, func(c *Config) { c.Limits.MaxOutputBytes = 1 << 20 }, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		write(t, nc, "quit\nafter\n")
		if got, err := io.ReadAll(nc); len(got) != floodBytes || err != nil {
			t.Errorf("got %d bytes, %v, want %d", len(got), err, floodBytes)
		}
		nc.Close()
		s.awaitClients(t, 0)
		if fed := s.all()[0].lastFed(); fed != "quit\n" {
			t.Errorf("fed %q", fed)
		}
	})
}

// TestWhatWasReadIsExecuted checks that a client may send and leave while its session waits.
func TestWhatWasReadIsExecuted(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		nc := s.dial(t)
		write(t, nc, "wait\nlast\n")
		nc.Close()
		s.await(t, func(st Stats) bool { return st.Accepted == 1 && st.Connected == 0 })
		if fed := s.all()[0].lastFed(); !strings.HasSuffix(fed, "last\n") {
			t.Errorf("the last line was not executed: %q", fed)
		}
	})
}

func TestClientThatReadsInTimeGetsAll(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		const lines = 300
		s := start(func(c *Config) { c.Limits.MaxOutputBytes = 1 << 20 })
		nc := s.dial(t)
		write(t, nc, strings.Repeat("long\n", lines)+"close\n")
		s.awaitStall(t)
		if n, err := io.Copy(io.Discard, nc); n != lines*100_000+4 || err != nil {
			t.Errorf("got %d bytes, %v", n, err)
		}
	})
}

// TestNobodyStarves checks that clients that send without end leave the others their turns.
func TestNobodyStarves(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		var flooded atomic.Int64
		for range 3 {
			flood(t, s.dial(t), &flooded)
		}
		polite := s.dial(t)
		for asked := 0; asked < 20 || flooded.Load() < 300_000; asked++ {
			ask(t, polite, "hello\n", "hello\n")
		}
	})
}

// flood sends as fast as the server takes it and counts the bytes of the replies, until the test ends.
func flood(t *testing.T, nc net.Conn, received *atomic.Int64) {
	t.Helper()
	go func() {
		for lines := bytes.Repeat([]byte("line\n"), 10_000); ; {
			if _, err := nc.Write(lines); err != nil {
				return
			}
		}
	}()
	go func() {
		for buf := make([]byte, 64<<10); ; {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			received.Add(int64(n))
		}
	}()
}

// TestIdleConnectionsHoldNoBuffer checks this after a command in two pieces and a queued reply.
func TestIdleConnectionsHoldNoBuffer(t *testing.T) {
	const connections, mostBytes = 500, 2048
	if runtime.GOOS != "linux" {
		t.Skip("has no event loops")
	}
	s := start(t, 1, listen(t, "tcp"), func(c *Config) { c.Limits.MaxClients = connections })
	before := heapBytes()
	long := strings.Repeat("x", 100_000)
	for range connections {
		nc := s.greet(t)
		write(t, nc, "half")
		ask(t, nc, "\nlong\n", "half\n"+long)
	}
	if each := (heapBytes() - before) / connections; each > mostBytes {
		t.Errorf("%d bytes a connection, both ends together; want at most %d", each, mostBytes)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestPeerWithoutTLS(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		s := start(t, 1, listen(t, network), nil)
		s.greet(t)
		if p := s.all()[0].peer; p.TLS || p.CertName != "" || p.Unix != (network == "unix") {
			t.Errorf("%s: got %+v", network, p)
		}
	}
}

package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

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
		if _, err := io.WriteString(nc, strings.Repeat("long\n", 100)); err != nil {
			t.Fatal(err)
		}
		if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, nc); n != 100*100_000 || err != nil {
			t.Errorf("got %d bytes, %v, want %d", n, err, 100*100_000)
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
		if log := s.log.String(); !strings.Contains(log, "the session broke") || !strings.Contains(log, "(*echoes).Feed") {
			t.Errorf("the log has no panic with its stack: %s", log)
		}
	})
}

func TestMaxClients(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxClients = 2 })
		first, second := s.dial(t), s.dial(t)
		ask(t, first, "a\n", "a\n")
		ask(t, second, "a\n", "a\n")
		third := s.dial(t)
		if s.tls == nil {
			ended(t, third, "-ERR max number of clients reached\r\n")
		} else if b, _ := io.ReadAll(third); len(b) > 0 { // a reset is as good: nothing can be said before the handshake
			t.Errorf("the third client got %q", b)
		}
		first.Close()
		s.awaitClients(t, 1)
		ask(t, s.dial(t), "a\n", "a\n")
		if st := s.Stats(); st.Refused != 1 || st.Accepted != 3 {
			t.Errorf("got %+v", st)
		}
		if log := s.log.String(); strings.Count(log, "maximum number of clients") != 1 {
			t.Errorf("the log does not tell of it once: %s", log)
		}
	})
}

func TestUnauthenticatedClientMayNotLeaveRepliesUnread(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(locked)
		s.dialAndNotRead(t)
		s.awaitClients(t, 0)
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
	for _, tt := range []struct{ name, send string }{
		{"replies unread", strings.Repeat("long\n", 500)},
		{"a session that never stops", "forever\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachDriver(t, func(t *testing.T, start starter) {
				s := start(nil)
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

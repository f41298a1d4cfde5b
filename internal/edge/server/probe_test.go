package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellserver/internal/edge/server/goroutines"
	"cellserver/internal/wire/peer"
)

// stuck is a session that holds up whatever feeds it.
type stuck struct{ entered, release chan struct{} }

func (*stuck) HungUp(peer.Hangup) {}

func (s *stuck) Authenticated() bool { return true }

func (s *stuck) Monitors() bool { return false }

func (s *stuck) HoldsInput(int, int) {}

func (s *stuck) HoldsOutput(int) {}

func (s *stuck) Name() string { return "" }

func (s *stuck) Close() {}

func (s *stuck) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	close(s.entered)
	<-s.release
	return len(in), append(out, in...), peer.NeedInput
}

func TestProbe(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxClients = 1 })
		ask(t, s.dial(t), "a\n", "a\n")
		before := s.Stats()
		for range 3 { // also with no room left for another client
			if err := s.Probe(t.Context()); err != nil {
				t.Error(err)
			}
		}
		after := s.Stats()
		after.Received, after.Sent = before.Received, before.Sent // a loop shows those a round later
		if !reflect.DeepEqual(after, before) {
			t.Errorf("probes were counted: %+v, before %+v", after, before)
		}
	})
}

// One loop that hangs is found, though another one serves.
func TestProbeFindsALoopThatHangs(t *testing.T) {
	t.Parallel()
	for _, ioThreads := range []int{1, 2} {
		session := &stuck{make(chan struct{}), make(chan struct{})}
		s := start(t, ioThreads, listen(t, "tcp"), func(c *Config) {
			c.NewSession = func(peer.Peer, peer.Conn) peer.Session { return session }
		})
		if _, none := s.driver.(*goroutines.Driver); none {
			t.Skip("no event loops on this system")
		}
		nc := s.dial(t)
		write(t, nc, "a\n")
		<-session.entered
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		named := fmt.Sprintf("event loop 1 of %d does not respond", ioThreads)
		if err := s.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), named) {
			t.Errorf("%d loops, one of which hangs: got %v", ioThreads, err)
		}
		cancel()
		close(session.release)
		expect(t, nc, "a\n")
		if err := s.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestShutdownLeavesBehindWhatHangs: it returns all the same, and says what that is.
func TestShutdownLeavesBehindWhatHangs(t *testing.T) {
	t.Parallel()
	for ioThreads, want := range []string{"connections outside the event loops: 1", "event loop 1 of 1", "event loop 1 of 2"} {
		session := &stuck{make(chan struct{}), make(chan struct{})}
		s := start(t, ioThreads, listen(t, "tcp"), func(c *Config) {
			c.NewSession = func(peer.Peer, peer.Conn) peer.Session { return session }
		})
		if _, none := s.driver.(*goroutines.Driver); none && ioThreads > 0 {
			t.Skip("no event loops on this system")
		}
		write(t, s.dial(t), "a\n")
		<-session.entered
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := s.Shutdown(ctx)
		cancel()
		if !errors.Is(err, ErrStuck) || !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%d loops, and one session that hangs: got %v, want %s", ioThreads, err, want)
		}
		close(session.release)
	}
}

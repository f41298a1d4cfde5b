package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"cellserver/internal/wire/peer"
)

// hangOnce makes sessions hang in the first line "hang", which closes entered, until release is closed.
func hangOnce() (change func(*Config), entered, release chan struct{}) {
	entered, release = make(chan struct{}), make(chan struct{})
	return func(c *Config) {
		c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session {
			return &hooked{echoes{conn: conn}, func(line string) {
				if line == "hang" {
					close(entered)
					<-release
				}
			}}
		}
	}, entered, release
}

func TestProbe(t *testing.T) {
	onEachServer(t, func(c *Config) { c.Limits.MaxClients = 1 }, func(t *testing.T, s *testServer) {
		s.greet(t)
		before := s.Stats()
		for range 3 { // also at MaxClients
			if err := s.Probe(t.Context()); err != nil {
				t.Error(err)
			}
		}
		after := s.Stats()
		after.Received, after.Sent = before.Received, before.Sent // a loop publishes those a round later
		if !reflect.DeepEqual(after, before) {
			t.Errorf("probes were counted: %+v, before %+v", after, before)
		}
	})
}

// TestProbeFindsALoopThatHangs checks it also beside a loop that serves.
func TestProbeFindsALoopThatHangs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no event loops on this system")
	}
	for _, ioThreads := range []int{1, 2} {
		hang, entered, release := hangOnce()
		s := start(t, ioThreads, listen(t, "tcp"), hang)
		nc := s.dial(t)
		write(t, nc, "hang\n")
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		want := fmt.Sprintf("event loop 1 of %d does not respond", ioThreads)
		if err := s.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		cancel()
		close(release)
		expect(t, nc, "hang\n")
		if err := s.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestShutdownLeavesBehindWhatHangs checks that Shutdown returns all the same and names what hangs.
func TestShutdownLeavesBehindWhatHangs(t *testing.T) {
	for ioThreads, want := range []string{"connections outside the event loops: 1", "event loop 1 of 1", "event loop 1 of 2"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && ioThreads > 0 {
				t.Skip("no event loops on this system")
			}
			hang, entered, release := hangOnce()
			s := start(t, ioThreads, listen(t, "tcp"), hang)
			write(t, s.dial(t), "hang\n")
			<-entered
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := s.Shutdown(ctx)
			if !errors.Is(err, ErrStuck) || !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("got %v, want %s", err, want)
			}
			close(release)
		})
	}
}

package server

import (
	"io"
	"strings"
	"testing"
)

func TestNothingIsFedAfterClose(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxOutputBytes = 1 << 20 })
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

// TestWhatWasReadIsExecuted: a client that sends and goes, while its session waits, has all of it executed.
func TestWhatWasReadIsExecuted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
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

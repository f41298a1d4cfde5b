package server

import (
	"strings"
	"testing"
)

// TestGrowthWaitsForTheEvicted: a command that has become long is not read on while those have memory that are to end.
func TestGrowthWaitsForTheEvicted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		evictions := &s.goroutines.evictions
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		evictions.add(1)
		write(t, nc, strings.Repeat("x", maxKeptInput))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			evictions.add(-1)
		}()
		<-ended
		ask(t, nc, "y\n", strings.Repeat("x", maxKeptInput)+"y\n")
		other := s.dial(t)
		ask(t, other, "a\n", "a\n")
		s.all()[1].conn.Evict()
		s.awaitClients(t, 1)
		if n := evictions.open.Load(); n != 0 {
			t.Errorf("%d are waited for", n)
		}
	})
}

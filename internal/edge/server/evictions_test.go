package server

import (
	"strings"
	"testing"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// TestGrowthWaitsForTheEvicted: a command that has become long is not read on while those have memory that are to end.
func TestGrowthWaitsForTheEvicted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		entered, release := make(chan struct{}), make(chan struct{})
		s := start(func(c *Config) {
			c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session {
				return &hooked{echoes{conn: conn}, func(line string) {
					if line == "hang" {
						close(entered)
						<-release
					}
				}}
			}
		})
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		hanging := s.dial(t)
		ask(t, hanging, "a\n", "a\n")
		write(t, hanging, "hang\n")
		<-entered
		s.all()[1].conn.Evict() // it is to end, and cannot yet
		write(t, nc, strings.Repeat("x", conn.MaxKeptInput))
		close(release)
		ask(t, nc, "y\n", strings.Repeat("x", conn.MaxKeptInput)+"y\n")
		other := s.dial(t)
		ask(t, other, "a\n", "a\n")
		s.all()[2].conn.Evict()
		s.awaitClients(t, 1)
		ask(t, nc, strings.Repeat("x", conn.MaxKeptInput)+"y\n", strings.Repeat("x", conn.MaxKeptInput)+"y\n") // nobody is waited for
	})
}

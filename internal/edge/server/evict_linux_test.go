package server

import (
	"net"
	"sync/atomic"
	"testing"

	"cellserver/internal/wire/peer"
)

// TestLoopEvictsBetweenTurns: within one round of a loop all connections may grow, so one that is to be closed for its
// memory is closed before the next has its turn.
func TestLoopEvictsBetweenTurns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, goOn := make(chan struct{}), make(chan struct{})
	var s *testServer
	var closes atomic.Int32
	s = start(t, 1, l, func(c *Config) {
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
	var all []net.Conn
	for range 3 {
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		all = append(all, nc)
	}
	write(t, all[1], "evict\n")
	<-entered
	write(t, all[2], "look\n") // before the inbox is rung, and so in front of it in the next round
	close(goOn)
	expect(t, all[1], "evict\n")
	expect(t, all[2], "look\n")
	if closes.Load() != 1 {
		t.Errorf("the session was closed %d times when the next connection had its turn", closes.Load())
	}
	ended(t, all[0], "")
}

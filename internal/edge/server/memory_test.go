package server

import (
	"net"
	"strings"
	"testing"

	"cellserver/internal/base/buffers"
	"cellserver/internal/edge/server/conn"
	"cellserver/internal/test/patience"
)

// longHalf is a part of a command that is too long to stay half-sent.
var longHalf = strings.Repeat("x", conn.HalfSentBytes+1)

func withInputTimeout(c *Config) { c.Limits.InputTimeout = timeout }

// TestInputTimeout: it counts from when the command began to be long, whatever comes meanwhile, and begins again with the
// next command.
func TestInputTimeout(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(withInputTimeout)
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		s.pass(1) // a time of 0 is none
		for range 2 {
			write(t, nc, longHalf)
			s.pass(timeout - 1)
			write(t, nc, "x")
			s.pass(0)
			ask(t, nc, "\n", longHalf+"x\n")
		}
		write(t, nc, "a\n"+longHalf)
		expect(t, nc, "a\n")
		s.pass(timeout - 1)
		write(t, nc, "x")
		s.pass(1)
		ended(t, nc, "")
		s.awaitClients(t, 0)
		if n := s.Stats().Closed["input"]; n != 1 {
			t.Errorf("%d were closed for it", n)
		}
		if log := s.log.String(); strings.Count(log, "--input-timeout") != 1 {
			t.Errorf("the log does not say why once: %s", log)
		}
	})
}

// TestInputTimeoutSpares those who are silent, who have sent little, who are told things, and who wait.
func TestInputTimeoutSpares(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(withInputTimeout)
		for _, tt := range []struct{ first, half string }{{"a\n", ""}, {"a\n", longHalf[1:]}, {"monitor\n", longHalf}} {
			nc := s.dial(t)
			ask(t, nc, tt.first+tt.half, tt.first)
			s.pass(2 * timeout)
			ask(t, nc, "\n", tt.half+"\n")
		}
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		write(t, nc, "stay\n"+longHalf)
		s.pass(2 * timeout)
		all := s.all()
		all[len(all)-1].Session.(*echoes).release()
		s.pass(timeout - 1)
		ask(t, nc, "\n", longHalf+"\n")
	})
}

// TestInputTimeoutIsSettable: for who has left a command half-sent already, too.
func TestInputTimeoutIsSettable(t *testing.T) {
	onEachDriverInTime(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		s.pass(1) // a time of 0 is none
		write(t, nc, longHalf)
		s.pass(timeout / 2)
		limits := s.Limits()
		limits.InputTimeout = timeout
		s.SetLimits(limits)
		s.pass(timeout / 2)
		ended(t, nc, "")
	})
}

// held returns what the first session knows that its connection holds.
func (s *testServer) held() (input, free, output int64) {
	e := s.all()[0].Session.(*echoes)
	return e.input.Load(), e.inputFree.Load(), e.output.Load()
}

func (s *testServer) awaitHeld(t *testing.T, what string, cond func(input, free, output int64) bool) {
	t.Helper()
	if !patience.Until(func() bool { return cond(s.held()) }) {
		input, free, output := s.held()
		t.Fatalf("%s: the session knows of %d bytes of input, %d beside it, %d of output", what, input, free,
			output)
	}
}

// TestSessionKnowsWhatIsHeld: while a command is half-sent or replies are unread, and when that is over.
func TestSessionKnowsWhatIsHeld(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxOutputBytes = floodBytes / 2 })
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		half := strings.Repeat("x", 1<<20)
		write(t, nc, half)
		s.awaitHeld(t, "half-sent", func(input, free, _ int64) bool { return input == 1<<20 && input+free <= 2<<20 })
		ask(t, nc, "\n", half+"\n")
		s.awaitHeld(t, "done", func(input, free, output int64) bool {
			return input == 0 && free <= 2*conn.MaxKeptInput && output == 0
		})
		write(t, nc, "flood\na\n")
		s.awaitHeld(t, "unread", func(_, _, output int64) bool { return output > floodBytes/4 && output <= floodBytes+buffers.ChunkBytes })
		discard(t, nc, floodBytes)
		expect(t, nc, "a\n")
		s.awaitHeld(t, "read", func(_, _, output int64) bool { return output == 0 })
	})
}

// TestEvict: a connection is closed at once, and counted as what it was.
func TestEvict(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		s.all()[0].conn.Evict()
		s.all()[0].conn.Evict()
		s.awaitClients(t, 0)
		if n := s.Stats().Closed["memory"]; n != 1 {
			t.Errorf("%d were closed for it: %v", n, s.Stats().Closed)
		}
	})
}

// TestMaxClientsPerAddress: who is one too many learns that where anything can be said, and may come when another has gone.
func TestMaxClientsPerAddress(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(func(c *Config) { c.Limits.MaxClientsPerAddress = 2 })
		var all []net.Conn
		for range 2 {
			nc := s.dial(t)
			ask(t, nc, "a\n", "a\n")
			all = append(all, nc)
		}
		if s.network == "unix" {
			ask(t, s.dial(t), "a\n", "a\n")
			return
		}
		third := s.dialRaw(t)
		refusal := "-ERR max number of clients per address reached\r\n"
		if s.tls != nil {
			refusal = ""
		}
		ended(t, third, refusal)
		if st := s.Stats(); st.RefusedAddresses != 1 || st.Refused != 0 || st.Connected != 2 {
			t.Errorf("got %+v", st)
		}
		all[0].Close()
		s.awaitClients(t, 1)
		ask(t, s.dial(t), "a\n", "a\n")
	})
}

// TestAddressesAreForgotten: what is known of them is no more than of connections.
func TestAddressesAreForgotten(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		for range 3 {
			nc := s.dial(t)
			ask(t, nc, "a\n", "a\n")
			nc.Close()
		}
		s.awaitClients(t, 0)
		s.addresses.mu.Lock()
		defer s.addresses.mu.Unlock()
		if s.addresses.connected != nil {
			t.Errorf("known: %v", s.addresses.connected)
		}
	})
}

package connection_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/peer"
)

const (
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	noAuth    = "-NOAUTH Authentication required.\r\n"
)

// TestPasswordTakenAway: waiting clients are let in, as in Redis; a new password concerns new clients.
func TestPasswordTakenAway(t *testing.T) {
	r := commandstest.New(commandstest.WithPassword("secret"))
	s := r.Session()
	commandstest.Expect(t, s, "PING\r\n", noAuth)
	r.Config.Users.SetDefaultPassword("")
	if got := commandstest.Say(t, s, "PING\r\nACL WHOAMI\r\n"); got != commandstest.Pong+"$7\r\ndefault\r\n" || !s.Authenticated() {
		t.Errorf("got %q", got)
	}
	r.Config.Users.SetDefaultPassword("other")
	if got := commandstest.Say(t, s, "PING\r\n") + commandstest.Say(t, r.Session(), "PING\r\n"); got != commandstest.Pong+noAuth {
		t.Errorf("got %q", got)
	}
}

// TestLoginPauses: each failure from a host doubles the next pause, up to a bound; a minute or too many hosts
// reset it, a success does not. Nothing is executed meanwhile.
func TestLoginPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := commandstest.New(commandstest.WithPassword("secret"), func(c *commands.Config) { c.Now = func() int64 { return time.Now().UnixNano() } }) // the bubble's
		at := func(addr string, unix bool) *commandstest.Client {
			return r.SessionOf(peer.Peer{Addr: addr, Unix: unix})
		}
		a, sameHost, v6, socket := at("192.0.2.1:1", false), at("192.0.2.1:2", false), at("[2001:db8::1]:1", false), at("/run/a:1", true)
		const wrong, right, hello = "AUTH wrong\r\n", "AUTH secret\r\n", "HELLO 3 AUTH default wrong\r\n"
		for i, step := range []struct {
			s       *commandstest.Client
			after   time.Duration
			in      string
			pauseMs int64
		}{
			{a, 0, wrong, 50}, {sameHost, 0, wrong, 100}, {a, 0, hello, 200}, {v6, 0, wrong, 50}, {a, 0, wrong, 400},
			{socket, 0, wrong, 50}, {a, 0, wrong, 800}, {a, 0, wrong, 1600}, {a, 0, wrong, 1600},
			{a, 58 * time.Second, wrong, 1600},
			{v6, 0, wrong, 50}, {socket, 0, wrong, 50},
			{a, 0, right, 0}, {sameHost, 0, wrong, 1600}, {a, 0, wrong, 1600}, {a, 0, right, 0},
			{a, time.Hour, wrong, 50},
		} {
			time.Sleep(step.after) // the bubble's time
			began := time.Now()
			commandstest.Converse(t, step.s, step.in)
			if got := time.Since(began).Milliseconds(); got != step.pauseMs {
				t.Errorf("step %d: a pause of %d ms, want %d", i, got, step.pauseMs)
			}
		}
		s := at("192.0.2.9:1", false)
		replies, left, status := commandstest.Feed(t, s, "AUTH wrong\r\nAUTH secret\r\nPING\r\n")
		if replies != "" || left != "AUTH secret\r\nPING\r\n" || status != peer.Waiting || s.Authenticated() {
			t.Errorf("while it waits: %q, left %q, status %d", replies, left, status)
		}
		commandstest.Expect(t, s, left, wrongPass+"+OK\r\n"+commandstest.Pong)
		s.Close()
		s = at("192.0.2.8:1", false)
		commandstest.Feed(t, s, "AUTH wrong\r\n")
		s.HungUp(peer.HalfClosed)
		if replies, _, status := commandstest.Feed(t, s, ""); replies != "" || status != peer.Waiting {
			t.Errorf("a client that sends no more: %q, status %d", replies, status)
		}
		commandstest.Expect(t, s, "", wrongPass)
		s.Close()
		s = at("192.0.2.9:1", false)
		commandstest.Feed(t, s, "AUTH wrong\r\n")
		s.Close() // before the pause is over
		time.Sleep(time.Second)
	})
}

// TestLoginsBetweenGuesses: a client that guesses a password gets no further by logging in as another user in
// between.
func TestLoginsBetweenGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := filepath.Join(t.TempDir(), "users.acl")
		if err := os.WriteFile(users, []byte("user default off\nuser low on >pw ~low:* +cl.throttle\nuser admin on >secret ~* +@all"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := commandstest.New(func(c *commands.Config) {
			c.Now = func() int64 { return time.Now().UnixNano() } // the bubble's
			if _, err := c.Users.LoadFile(users); err != nil {
				t.Fatal(err)
			}
		})
		s := r.SessionOf(peer.Peer{Addr: "192.0.2.1:1"})
		began := time.Now()
		guesses := 0
		for ; time.Since(began) < 10*time.Minute; guesses++ {
			if got := commandstest.Say(t, s, "AUTH low pw\r\nAUTH admin guess\r\n"); got != "+OK\r\n"+wrongPass {
				t.Fatalf("got %q", got)
			}
		}
		if most := 5 + 600*10/16 + 1; guesses > most { // the first five are faster
			t.Errorf("%d guesses in ten minutes, at most %d are expected", guesses, most)
		}
		commandstest.Expect(t, s, "AUTH admin secret\r\nACL WHOAMI\r\n", "+OK\r\n$5\r\nadmin\r\n")
	})
}

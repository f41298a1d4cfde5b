package session

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// withRules gives the user default rules, so that long commands are admitted in the background.
func withRules(t *testing.T) func(c *execute.Config) {
	return func(c *execute.Config) {
		file := filepath.Join(t.TempDir(), "users.acl")
		if err := os.WriteFile(file, []byte("user default on nopass ~* &* +@all -flushdb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Users.LoadFile(file); err != nil {
			t.Fatal(err)
		}
		c.Limits.MaxArgs = 10_000
		c.Handlers["touch"] = c.Handlers["ping"]
	}
}

func longTouch() string {
	return resptest.Encode(append([]string{"TOUCH"}, make([]string, 2*resp.LongArgs)...)...)
}

// TestLongCommandsStayInOrder: a command admitted in the background waits for the batch before it.
func TestLongCommandsStayInOrder(t *testing.T) {
	first := resptest.Ints(0, 5, 4, -1, 10)
	for _, tt := range []struct{ name, in, want string }{
		{"a command", "CL.THROTTLE a 4 1 10\r\n" + longTouch() + "CL.THROTTLE b 4 1 10\r\n", first + pong + first},
		{"a wrong one", "CL.THROTTLE a 4 1 10\r\n" + strings.Replace(longTouch(), "TOUCH", "PONGS", 1) + "PING\r\n", first + "-ERR unknown command"},
	} {
		later, with := withLaterStore()
		r := newHarness(t, with, withRules(t))
		c := r.session()
		later.Hold()
		replies, left, status := c.feed(tt.in)
		if status != peer.Waiting || replies != "" {
			t.Errorf("%s: before the store has answered: status %d, got %.100q", tt.name, status, replies)
		}
		later.Release()
		<-c.woken
		replies, _, _ = c.converse(left)
		if !strings.HasPrefix(replies, tt.want) {
			t.Errorf("%s: got %.200q, want %q", tt.name, replies, tt.want)
		}
		if held, _ := c.x.Client.Memory(); held[clients.Arguments] != 0 {
			t.Errorf("%s: %v are held", tt.name, held)
		}
	}
}

// TestLongCommandIsCancelled: its arguments are counted while it waits; its transaction is not executed.
func TestLongCommandIsCancelled(t *testing.T) {
	r := newHarness(t, withRules(t))
	c := r.session()
	r.Background.Take(context.Background(), background.Who{})
	replies, left, status := c.feed("MULTI\r\n" + longTouch() + "PING\r\nEXEC\r\n")
	if status != peer.Waiting || replies != "+OK\r\n" {
		t.Fatalf("status %d, got %q", status, replies)
	}
	if held, _ := c.x.Client.Memory(); held[clients.Arguments] < 2*resp.LongArgs*24 {
		t.Errorf("%v are held", held)
	}
	c.HungUp(peer.HalfClosed)
	want := "-" + reply.ErrCancelled.Error() + "\r\n+QUEUED\r\n-" + reply.ErrExecFailed.Error() + "\r\n"
	if got, _, _ := c.converse(left); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if held, _ := c.x.Client.Memory(); held != (clients.Held{}) {
		t.Errorf("%v are held", held)
	}
	r.Background.Give(background.Who{})
}

// TestArgumentsOfBackgroundCommandsAreCounted while they wait, and a script's first part no longer.
func TestArgumentsOfBackgroundCommandsAreCounted(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) {
		c.Handlers["del"] = execute.Plain(func(c execute.Call, _ [][]byte) error {
			return c.Background(func(context.Context, int64) {}, func(c execute.Call) error { c.Reply().Int(0); return nil })
		})
	})
	c := r.session()
	r.Background.Take(context.Background(), background.Who{})
	_, left, _ := c.feed(resptest.Encode("DEL", strings.Repeat("x", 2000), "y"))
	if held, _ := c.x.Client.Memory(); held[clients.Arguments] < 2000 || held[clients.Arguments] > 2100 {
		t.Errorf("%v are held", held)
	}
	r.Background.Give(background.Who{})
	if got, _, _ := c.converse(left); got != ":0\r\n" {
		t.Errorf("got %q", got)
	}
	_, with := withLaterStore()
	r2 := newHarness(t, with)
	c2 := r2.session()
	c2.expect(t, resptest.Encode("EVAL", nativeSource, "1", "k"), resptest.Ints(0, 5, 4, -1, 10))
	for _, one := range []*client{c, c2} {
		if held, _ := one.x.Client.Memory(); held[clients.Arguments] != 0 {
			t.Errorf("afterwards %v are held", held)
		}
	}
}

// TestLongRepliesAreNotCopied as a whole while others wait: the background builds those of EXEC and scripts,
// and a turn takes a piece.
func TestLongRepliesAreNotCopied(t *testing.T) {
	const size = 1 << 20
	eval := resptest.Encode("EVAL", "return string.rep('x', 1048576)", "0")
	bulk := "$1048576\r\n" + strings.Repeat("x", size) + "\r\n"
	for _, tt := range []struct{ name, before, in, want string }{
		{"a script", "", eval, bulk},
		{"EXEC", "MULTI\r\n" + eval + eval, "EXEC\r\n", "*2\r\n" + bulk + bulk},
	} {
		r := newHarness(t, func(c *execute.Config) { c.MaxReplyBytes = 4 << 20 })
		c := r.session()
		c.say(t, tt.before)
		c.wait(t, tt.in)
		<-c.woken
		buf, all := make([]byte, 0, 2*execute.PieceBytes), make([]byte, 0, 3*size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for status := peer.More; status == peer.More; {
			var out []byte
			_, out, status = c.Feed(nil, append(buf, pong...))
			if all = append(all, out[len(pong):]...); len(out) > cap(buf) {
				t.Fatalf("%s: %d bytes in a turn", tt.name, len(out))
			}
		}
		runtime.ReadMemStats(&after)
		if string(all) != tt.want {
			t.Errorf("%s: got %d bytes, %.30q", tt.name, len(all), all)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > size/8 && !racetest.Enabled { // which forgets pooled buffers
			t.Errorf("%s: %d bytes are allocated", tt.name, n)
		}
	}
}

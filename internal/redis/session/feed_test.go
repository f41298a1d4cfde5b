package session_test

import (
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestUnauthenticatedFeedStopsEarly: CVE-2025-21605.
func TestUnauthenticatedFeedStopsEarly(t *testing.T) {
	longest := 0
	s := commandstest.New(commandstest.WithPassword("secret")).Session()
	inputs := []string{"PING\r\n", "HELLO\r\n", resptest.Encode(strings.Repeat("\x00", 128), strings.Repeat("\x00", 128)), "RESET\r\n", "AUTH\r\n"}
	for _, in := range inputs {
		longest = max(longest, len(commandstest.Say(t, s, in)))
	}
	buf := []byte(strings.Repeat(strings.Join(inputs, ""), 100))
	for len(buf) > 0 {
		n, out, status := s.Feed(buf, nil)
		buf = buf[n:]
		if len(out) >= peer.UnauthenticatedOutput+longest || n == 0 {
			t.Fatalf("%d bytes of replies, status %d, %d bytes consumed", len(out), status, n)
		}
	}
	if s.Authenticated() || !commandstest.New().Session().Authenticated() {
		t.Error("Authenticated is wrong")
	}
	commandstest.Say(t, s, "AUTH secret\r\n")
	if _, out, status := s.Feed([]byte(strings.Repeat("PING\r\n", 1000)), nil); len(out) != 1000*len(commandstest.Pong) || status != peer.NeedInput || !s.Authenticated() {
		t.Errorf("after AUTH: %d bytes of replies, status %d", len(out), status)
	}
}

// TestUnauthenticatedBounds end with AUTH and return with RESET within a pipeline.
func TestUnauthenticatedBounds(t *testing.T) {
	eleven := resptest.Encode("ECHO", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
	const read, refused = "-ERR wrong number of arguments for 'echo' command\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"
	const ok, wrong, reset = "+OK\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", "+RESET\r\n"
	for _, tt := range []struct {
		in, want string
		status   peer.Status
	}{
		{eleven, refused, peer.Close},
		{"AUTH wrong\r\n" + eleven, wrong + refused, peer.Close},
		{"AUTH secret\r\n" + eleven, ok + read, peer.NeedInput},
		{"AUTH secret\r\nAUTH wrong\r\n" + eleven, ok + wrong + read, peer.NeedInput},
		{"AUTH secret\r\nRESET\r\n" + eleven, ok + reset + refused, peer.Close},
		{"AUTH secret\r\n" + eleven + "RESET\r\n" + eleven, ok + read + reset + refused, peer.Close},
		// As in Redis, a HELLO that fails after its AUTH has authenticated.
		{"HELLO 2 AUTH default secret FOO\r\n" + eleven, "-ERR Syntax error in HELLO option 'FOO'\r\n" + read, peer.NeedInput},
	} {
		if got, _, status := commandstest.Converse(t, commandstest.New(commandstest.WithPassword("secret")).Session(), tt.in); got != tt.want || status != tt.status {
			t.Errorf("%.60q: got %q, status %d, want %q, %d", tt.in, got, status, tt.want, tt.status)
		}
	}
}

// TestFeedStopsWhenInputIsLong, even if the commands have no replies: the buffer may hold megabytes.
func TestFeedStopsWhenInputIsLong(t *testing.T) {
	const most = 64 << 10
	call := resptest.Encode("CL.THROTTLE", "k", "1", "1", "1")
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CLIENT REPLY OFF\r\n")
	buf, feeds := []byte(strings.Repeat(call, 10*most/len(call))), 0
	for status := peer.More; status == peer.More; feeds++ {
		var n int
		if n, _, status = s.Feed(buf, nil); n > most+len(call) {
			t.Fatalf("%d bytes were consumed in a turn", n)
		}
		buf = buf[n:]
	}
	if len(buf) > 0 || feeds < 10 {
		t.Errorf("%d bytes are left after %d feeds", len(buf), feeds)
	}
	if got := commandstest.Say(t, s, "CLIENT REPLY ON\r\n"+resptest.Encode("ECHO", strings.Repeat("x", most))); len(got) < most {
		t.Errorf("a long command got %.100q", got)
	}
}

// TestWatchGivesWay: other clients are served during a WATCH of many keys.
func TestWatchGivesWay(t *testing.T) {
	watch := func(n, from int) string {
		args := []string{"WATCH"}
		for i := range n {
			args = append(args, strconv.Itoa(from+i))
		}
		return resptest.Encode(args...)
	}
	const watched = 10_000
	r := commandstest.New()
	s, other := r.Session(), r.Session()
	left, turns, replies := watch(watched, 0)+"CLIENT INFO\r\nMULTI\r\nEXEC\r\nUNWATCH\r\nPING\r\n", 0, ""
	for ; left != ""; turns++ {
		n, out, status := s.Feed([]byte(left), nil)
		if left, replies = left[n:], replies+string(out); status == peer.Waiting {
			<-s.Conn.Woken
		}
		if turns == 1 { // on an already watched key
			commandstest.Say(t, other, "CL.THROTTLE 0 1 1 1\r\n")
		}
	}
	if turns < watched/1000+1 {
		t.Errorf("it took %d turns", turns)
	}
	if !strings.HasPrefix(replies, "+OK\r\n$") || !strings.Contains(replies, " watch=10000 ") || !strings.HasSuffix(replies, "\r\n+OK\r\n*-1\r\n+OK\r\n+PONG\r\n") {
		t.Errorf("got %q", replies)
	}
	few := strings.Repeat(watch(100, 0), 30) + "UNWATCH\r\n"
	for range 5 {
		few += few
	}
	for left := few; left != ""; {
		n, _, _ := s.Feed([]byte(left), nil)
		if left = left[n:]; n > 30*len(watch(100, 0)) {
			t.Fatalf("a turn took %d bytes", n)
		}
	}
	s.Feed([]byte(watch(watched, 0)), nil) // ends half-way
	s.Close()
	if got := commandstest.Say(t, other, "CLIENT LIST\r\nPING\r\n"); strings.Count(got, "id=") != 1 {
		t.Error(got)
	}
}

// TestLongBatchesEndAFeed after a few of them, so that others have their turn.
func TestLongBatchesEndAFeed(t *testing.T) {
	for call, feeds := range map[string]int{
		"CL.SLIDINGWINDOW k 9 60\r\n":                          4,
		"CL.SLIDINGWINDOW k 9 60\r\nCL.FIXEDWINDOW f 9 60\r\n": 2,
		"CL.FIXEDWINDOW f 9 60\r\n":                            1,
		"CL.THROTTLE k 9 1 1\r\n":                              1,
	} {
		s := commandstest.New().Session()
		in := []byte(strings.Repeat(call, 800/strings.Count(call, "\r\n")))
		n := 0
		for status := peer.More; status == peer.More && len(in) > 0; n++ {
			var consumed int
			consumed, _, status = s.Feed(in, nil)
			in = in[consumed:]
		}
		if n != feeds || len(in) > 0 {
			t.Errorf("%q: %d feeds, want %d; left %d bytes", call, n, feeds, len(in))
		}
	}
}

// TestLongCommandsEndAFeed, even if each is short.
func TestLongCommandsEndAFeed(t *testing.T) {
	const calls = 40
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CL.SLIDINGWINDOW k 9 60\r\n")
	in, most := []byte(strings.Repeat("DUMP k\r\n", calls)), 0
	for len(in) > 0 {
		n, _, status := s.Feed(in, nil)
		if in = in[n:]; len(in) > 0 && status != peer.More {
			t.Fatalf("status %v with %d bytes left", status, len(in))
		}
		most = max(most, n/len("DUMP k\r\n"))
	}
	if most > 4 { // each costs half a millisecond
		t.Errorf("%d calls in a turn", most)
	}
}

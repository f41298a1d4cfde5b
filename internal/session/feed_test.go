package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/commands/rig"
	"cellserver/internal/peer"
	"cellserver/internal/resptest"
)

const feedBytes = 64 << 10 // of replies, after which a Feed ends

// TestFeedStopsWhenRepliesAreLong, so that a short input cannot fill the memory.
func TestFeedStopsWhenRepliesAreLong(t *testing.T) {
	const list, calls = "COMMAND LIST\r\n", 1000
	r := rig.New()
	s := r.Session()
	one := rig.Say(t, s, list)
	buf, before, feeds, total := []byte(strings.Repeat(list, calls)), strings.Repeat("x", 1000), 0, 0
	for {
		n, out, status := s.Feed(buf, []byte(before)) // what is pending already does not count
		buf, feeds = buf[n:], feeds+1
		out = out[len(before):]
		if total += len(out); string(out) != strings.Repeat(one, len(out)/len(one)) {
			t.Fatalf("feed %d: the replies are others", feeds)
		}
		if len(out) >= feedBytes+len(one) {
			t.Errorf("feed %d: %d bytes of replies", feeds, len(out))
		}
		if status == peer.NeedInput {
			break
		}
		if status != peer.More || len(out) < feedBytes {
			t.Fatalf("feed %d: status %d after %d bytes", feeds, status, len(out))
		}
	}
	if len(buf) > 0 || total != calls*len(one) || feeds < calls*len(one)/(feedBytes+len(one)) {
		t.Errorf("%d bytes left, %d bytes of replies in %d feeds", len(buf), total, feeds)
	}
}

// TestUnauthenticatedFeedStopsEarly: CVE-2025-21605.
func TestUnauthenticatedFeedStopsEarly(t *testing.T) {
	longest := 0
	s := rig.New(rig.WithPassword("secret")).Session()
	inputs := []string{"PING\r\n", "HELLO\r\n", resptest.Encode(strings.Repeat("\x00", 128), strings.Repeat("\x00", 128)), "RESET\r\n", "AUTH\r\n"}
	for _, in := range inputs {
		longest = max(longest, len(rig.Say(t, s, in)))
	}
	buf := []byte(strings.Repeat(strings.Join(inputs, ""), 100))
	for len(buf) > 0 {
		n, out, status := s.Feed(buf, nil)
		buf = buf[n:]
		if len(out) >= peer.UnauthenticatedOutput+longest || n == 0 {
			t.Fatalf("%d bytes of replies, status %d, %d bytes consumed", len(out), status, n)
		}
	}
	if s.Authenticated() || !rig.New().Session().Authenticated() {
		t.Error("Authenticated is wrong")
	}
	rig.Say(t, s, "AUTH secret\r\n")
	if _, out, status := s.Feed([]byte(strings.Repeat("PING\r\n", 1000)), nil); len(out) != 1000*len(rig.Pong) || status != peer.NeedInput || !s.Authenticated() {
		t.Errorf("after AUTH: %d bytes of replies, status %d", len(out), status)
	}
}

// TestUnauthenticatedBounds go with AUTH, and come back with RESET, inside of one pipeline.
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
		// As in Redis, a HELLO that fails behind its AUTH has authenticated.
		{"HELLO 2 AUTH default secret FOO\r\n" + eleven, "-ERR Syntax error in HELLO option 'FOO'\r\n" + read, peer.NeedInput},
	} {
		if got, _, status := rig.Converse(t, rig.New(rig.WithPassword("secret")).Session(), tt.in); got != tt.want || status != tt.status {
			t.Errorf("%.60q: got %q, status %d, want %q, %d", tt.in, got, status, tt.want, tt.status)
		}
	}
}

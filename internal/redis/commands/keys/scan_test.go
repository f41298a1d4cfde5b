package keys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// scan returns the cursor and the names of a SCAN.
func scan(t *testing.T, s *commandstest.Client, args string) (cursor string, names []string) {
	t.Helper()
	reply := resptest.ParseAll(t, commandstest.Say(t, s, "SCAN "+args+"\r\n"))[0]
	if len(reply.Elements) != 2 {
		t.Fatalf("SCAN %s: got %+v", args, reply)
	}
	for _, e := range reply.Elements[1].Elements {
		names = append(names, e.Text)
	}
	return reply.Elements[0].Text, names
}

// TestScanByAnyCount finds every key once, and a long step equals the short steps within it.
func TestScanByAnyCount(t *testing.T) {
	racetest.SkipAlone(t)
	const keys = 6000
	s := commandstest.New().Session()
	for i := range keys {
		commandstest.Say(t, s, fmt.Sprintf("CL.THROTTLE key%d 0 1 60\r\n", i))
	}
	for _, count := range []int{1, 10, 999, 1001, 5000, 1 << 30} {
		cursor, found := "0", []string(nil)
		for {
			next, names := scan(t, s, fmt.Sprintf("%s COUNT %d", cursor, count))
			found = append(found, names...)
			if cursor = next; next == "0" {
				break
			}
		}
		slices.Sort(found)
		if n := len(slices.Compact(found)); n != keys || len(found) != keys {
			t.Errorf("by %d: %d names, %d different ones", count, len(found), n)
		}
	}
	cursor, steps := "0", []string(nil)
	for range 3 {
		next, names := scan(t, s, cursor+" COUNT 1000")
		cursor, steps = next, append(steps, names...)
	}
	next, names := scan(t, s, "0 COUNT 3000")
	slices.Sort(names)
	slices.Sort(steps)
	if next != cursor || !slices.Equal(names, steps) {
		t.Errorf("one step goes to %s over %d names, three to %s over %d", next, len(names), cursor, len(steps))
	}
}

// TestScanLeavesTheLoop: a step above an event loop's share, by the keys' lengths or by the pattern, moves to
// the background with the same result.
func TestScanLeavesTheLoop(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	long := commandstest.New().Session()
	short := commandstest.New().Session()
	for i := range 1000 {
		commandstest.Say(t, long, fmt.Sprintf("CL.THROTTLE %s%04d 0 1 60\r\n", a(4092), i))
		commandstest.Say(t, short, fmt.Sprintf("CL.THROTTLE user:%d:login 0 1 60\r\n", i))
	}
	for _, tt := range []struct {
		name   string
		s      *commandstest.Client
		args   string
		status peer.Status
		found  int
	}{
		{"usual", short, "COUNT 1000 MATCH user:*:login", peer.NeedInput, 1000},
		{"all", short, "COUNT 1000", peer.NeedInput, 1000},
		{"one digit", short, "COUNT 1000 MATCH *:?:*", peer.NeedInput, 10},
		{"some long keys", long, "COUNT 10 MATCH *" + a(100) + "b", peer.NeedInput, 0},
		{"many", short, "COUNT 1001", peer.Waiting, 1000},
		{"many long keys", long, "COUNT 1000", peer.Waiting, 1000},
		{"the end of long keys", long, "COUNT 1000 MATCH *" + a(2040) + "b", peer.Waiting, 0},
		{"the middle of long keys", long, "COUNT 1000 MATCH *" + a(200) + "b*", peer.Waiting, 0},
		{"a long pattern with classes", long, "COUNT 10 MATCH *" + a(1000) + "[ab]" + a(1000) + "b*", peer.Waiting, 0},
		{"all of them by their end", long, "COUNT 1000 MATCH *" + a(90) + "?[0-9]??", peer.Waiting, 1000},
	} {
		replies, _, status := commandstest.Feed(t, tt.s, "SCAN 0 "+tt.args+"\r\n")
		if status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, status, tt.status)
		}
		if status == peer.Waiting {
			replies, _, _ = commandstest.Converse(t, tt.s, "")
		}
		got := resptest.ParseAll(t, replies)[0].Elements
		if found := len(got[1].Elements); found != tt.found {
			t.Errorf("%s: %d keys, want %d, and then %s", tt.name, found, tt.found, got[0].Text)
		}
	}
}

// TestReplyBounds: KEYS refuses a longer reply; SCAN leaves the rest for the next call.
func TestReplyBounds(t *testing.T) {
	const two = "*2\r\n$1\r\na\r\n$1\r\nb\r\n"
	const tooLong = "-ERR the reply would be longer than 13 bytes, the limit of --max-output-bytes; use SCAN\r\n"
	for maxBytes, want := range map[int]string{14: two, 13: tooLong} {
		s := commandstest.New(func(c *commands.Config) { c.MaxReplyBytes = maxBytes }).Session()
		commandstest.Say(t, s, "CL.THROTTLE a 0 1 60\r\nCL.THROTTLE b 0 1 60\r\n")
		if got := commandstest.Say(t, s, "KEYS ?\r\n"); got != want && got != "*2\r\n$1\r\nb\r\n$1\r\na\r\n" {
			t.Errorf("%d bytes: got %q, want %q", maxBytes, got, want)
		}
	}
	s := commandstest.New(func(c *commands.Config) { c.MaxReplyBytes = 2000 }).Session()
	for i := range 6000 {
		commandstest.Say(t, s, fmt.Sprintf("CL.THROTTLE key%d 0 1 60\r\n", i))
	}
	if cursor, names := scan(t, s, "0 COUNT 6000"); cursor == "0" || len(names) < 100 || len(names) > 3000 {
		t.Errorf("%d names, and then %s", len(names), cursor)
	}
}

// TestScanArguments have bounds.
func TestScanArguments(t *testing.T) {
	s := commandstest.New().Session()
	longest := strings.Repeat("p", commandstest.MaxKeyBytes)
	const none, tooLong = "*2\r\n$1\r\n0\r\n*0\r\n", "-ERR pattern is longer than 4096 bytes, the limit of --max-key-bytes\r\n"
	const syntax, notInteger = "-ERR syntax error\r\n", "-ERR value is not an integer or out of range\r\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"SCAN", "0", "MATCH", longest}, none},
		{[]string{"SCAN", "0", "MATCH", longest + "p"}, tooLong},
		{[]string{"KEYS", longest}, "*0\r\n"},
		{[]string{"KEYS", longest + "p"}, tooLong},
		{[]string{"SCAN", "0", "COUNT", "1"}, none},
		{[]string{"SCAN", "0", "COUNT", "0"}, syntax},
		{[]string{"SCAN", "0", "COUNT", "x"}, notInteger},
		{[]string{"SCAN", "0", "COUNT", "9223372036854775807"}, none},
		{[]string{"SCAN", "0", "COUNT"}, syntax},
		{[]string{"SCAN", "0", "NOSUCH", "1"}, syntax},
		{[]string{"SCAN", "18446744073709551615"}, none},
		{[]string{"SCAN", "18446744073709551616"}, "-ERR invalid cursor\r\n"},
	} {
		commandstest.Expect(t, s, resptest.Encode(tt.args...), tt.want)
	}
}

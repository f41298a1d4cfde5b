package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestReplyModes compares CLIENT REPLY with redis-server 7.0.15 in pipelines, batches and waits, wherever the
// pipeline is cut.
func TestReplyModes(t *testing.T) {
	const throttle = "CL.THROTTLE k 9 1 1\r\n"
	call := func(n int64) string { return resptest.Ints(0, 10, 10-n, -1, n) }
	for _, tt := range []struct{ name, in, want string }{
		{"off in a batch", throttle + "CLIENT REPLY OFF\r\n" + throttle + throttle + "CLIENT REPLY ON\r\n" + throttle, call(1) + "+OK\r\n" + call(4)},
		{"skip in a batch", throttle + "CLIENT REPLY SKIP\r\n" + throttle + throttle, call(1) + call(3)},
		{"skip what waits", "CLIENT REPLY SKIP\r\nDBSIZE\r\nDBSIZE\r\n", ":0\r\n"},
		{"off while it waits", "CLIENT REPLY OFF\r\nDBSIZE\r\nEVAL \"return 1\" 0\r\nDBSIZE\r\nCLIENT REPLY ON\r\nDBSIZE\r\n", "+OK\r\n:0\r\n"},
		{"skip an error", "CLIENT REPLY SKIP\r\nNOSUCH\r\nPING\r\n", commandstest.Pong},
		{"skip an error that waits", "CLIENT REPLY SKIP\r\nAUTH a b\r\nPING\r\n", commandstest.Pong},
		{"skip nothing", "CLIENT REPLY SKIP\r\n\r\nPING\r\n", commandstest.Pong},
		{"off and nothing", "CLIENT REPLY OFF\r\n\r\nPING\r\nCLIENT REPLY ON\r\n", "+OK\r\n"},
		{"skip and skip", "CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\n", commandstest.Pong},
		{"skip and on", "CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n", "+OK\r\n" + commandstest.Pong},
		{"skip and off", "CLIENT REPLY SKIP\r\nCLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\n", "+OK\r\n"},
		{"skip when off", "CLIENT REPLY OFF\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n", "+OK\r\n" + commandstest.Pong},
		{"skip and reset", "CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n", commandstest.Pong},
		{"off and reset", "CLIENT REPLY OFF\r\nRESET\r\nPING\r\n", "+RESET\r\n" + commandstest.Pong},
		{"skip and nonsense", "CLIENT REPLY SKIP\r\nCLIENT REPLY x\r\nPING\r\n", commandstest.Pong},
		{"skip a transaction", "MULTI\r\nPING\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nEXEC\r\nECHO a\r\nECHO b\r\n",
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + commandstest.Pong + "+OK\r\n$1\r\nb\r\n"},
		{"skip EXEC", "MULTI\r\n" + throttle + "CLIENT REPLY SKIP\r\nDISCARD\r\nCLIENT REPLY SKIP\r\nMULTI\r\n" + throttle + "EXEC\r\n",
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n+QUEUED\r\n*1\r\n" + call(1)},
		{"off before a transaction aside", "CLIENT REPLY OFF\r\nMULTI\r\n" + throttle + "DBSIZE\r\nEXEC\r\nCLIENT REPLY ON\r\n" + throttle, "+OK\r\n" + call(2)},
		{"a native script", "CLIENT REPLY SKIP\r\n" + resptest.Encode("EVAL", native, "1", "k", "9", "1", "1") + throttle, call(2)},
	} {
		commandstest.Expect(t, commandstest.New().Session(), tt.in, tt.want)
		var got strings.Builder
		s := commandstest.New().Session()
		for line := range strings.SplitAfterSeq(tt.in, "\r\n") {
			replies, _, _ := commandstest.Converse(t, s, line)
			got.WriteString(replies)
		}
		if !strings.Contains(tt.in, "*") && got.String() != tt.want { // else a line is not a command
			t.Errorf("%s, line by line: got %q, want %q", tt.name, got.String(), tt.want)
		}
	}
	s := commandstest.New().Session()
	if got, _, status := commandstest.Converse(t, s, "CLIENT REPLY OFF\r\nPING\r\nQUIT\r\nPING\r\n"); got != "" || status != peer.Close {
		t.Errorf("QUIT when off: %q, status %d", got, status)
	}
}

package admin_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const loop = "redis.call('cl.throttle', KEYS[1], 4, 1, 10) while true do end"

// TestScriptKill ends what runs, by EVAL and in EXEC.
func TestScriptKill(t *testing.T) {
	for _, in := range []string{"", "MULTI\r\n"} {
		r := commandstest.New(commandstest.Meddling, commandstest.WithTimeLimit(time.Hour))
		s, other := r.Session(), r.Session()
		started := make(chan struct{}, 1)
		r.Meddle = func() { started <- struct{}{} }
		call := resptest.Encode("EVAL", "redis.call('test.meddle') "+loop, "1", "a")
		if in != "" {
			commandstest.Say(t, s, in+call)
			call = "EXEC\r\n"
		}
		if _, _, status := commandstest.Feed(t, s, call); status != peer.Waiting {
			t.Fatalf("status %d", status)
		}
		<-started
		commandstest.Expect(t, other, "SCRIPT KILL\r\n", "+OK\r\n")
		<-s.Conn.Woken
		commandstest.ExpectLike(t, s, "EXISTS a\r\n",
			"…-ERR Script killed by user with SCRIPT KILL…\r\n:0\r\n")
	}
}

// TestScriptCommands: scripts are known by their SHA1 until they are flushed.
func TestScriptCommands(t *testing.T) {
	s := commandstest.New().Session()
	sha := commandstest.SHAOf("return 7")
	const flushes = "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"
	known, unknown := "*2\r\n:1\r\n:0\r\n", "*2\r\n:0\r\n:0\r\n"
	for _, tt := range []struct{ in, want string }{
		{"EXISTS " + sha + " x", unknown},
		{"LOAD \"return 7\"", "$40\r\n" + sha + "\r\n"},
		{"LOAD \"return (\"", "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'\r\n"},
		{"EXISTS " + strings.ToUpper(sha) + " x", known},
		{"FLUSH nosuch", flushes},
		{"FLUSH sync async", flushes},
		{"EXISTS " + sha + " " + sha[1:], known},
		{"FLUSH", "+OK\r\n"},
		{"EXISTS " + sha + " x", unknown},
		{"LOAD \"return 7\"", "$40\r\n" + sha + "\r\n"},
		{"FLUSH Sync", "+OK\r\n"},
		{"EXISTS " + sha + " x", unknown},
		{"LOAD \"return 7\"", "$40\r\n" + sha + "\r\n"},
		{"FLUSH aSYNC", "+OK\r\n"},
		{"EXISTS " + sha + " x", unknown},
		{"KILL", "-NOTBUSY No scripts in execution right now.\r\n"},
	} {
		commandstest.Expect(t, s, "SCRIPT "+tt.in+"\r\n", tt.want)
	}
}

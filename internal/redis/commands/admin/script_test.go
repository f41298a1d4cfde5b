package admin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const loop = "redis.call('cl.throttle', KEYS[1], 4, 1, 10) while true do end"

// TestScriptKill ends scripts of EVAL and of EXEC.
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

// TestDebugSleep replies after the given time.
func TestDebugSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ok, refused = "+OK\r\n", "-ERR DEBUG SLEEP takes 0 to 3600 seconds\r\n"
		s := commandstest.New().Session()
		for _, tt := range []struct {
			sec  string
			want string
			took time.Duration
		}{
			{"2.5", ok, 2500 * time.Millisecond}, {"0", ok, 0}, {"3600", ok, time.Hour}, {"3600.001", refused, 0}, {"-0.001", refused, 0},
			{"NaN", refused, 0}, {"x", refused, 0},
		} {
			began := time.Now()
			if got := commandstest.Say(t, s, "DEBUG SLEEP "+tt.sec+"\r\n"); got != tt.want || time.Since(began) != tt.took {
				t.Errorf("%s s: got %q after %s", tt.sec, got, time.Since(began))
			}
		}
	})
}

// TestMayDebug asks about the client.
func TestMayDebug(t *testing.T) {
	r := commandstest.New(func(c *commands.Config) { c.MayDebug = func(p peer.Peer) bool { return p.Unix } })
	const refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run " +
		"it from a local connection, otherwise you need to start the server with --enable-debug-command\r\n"
	for unix, want := range map[bool]string{true: "+OK\r\n", false: refused} {
		if got := commandstest.Say(t, r.SessionOf(peer.Peer{Unix: unix}), "DEBUG SLEEP 0\r\n"); got != want {
			t.Errorf("unix %t: got %q, want %q", unix, got, want)
		}
	}
}

package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestUnknownCommandsAreLogged once a minute for a client with many; not for a few.
func TestUnknownCommandsAreLogged(t *testing.T) {
	for call, command := range map[string]string{
		"NOSUCH secret\r\n": "NOSUCH", "HINCRBY k f 1\r\n": "HINCRBY", "MULTI\r\nHINCRBY k f 1\r\nDISCARD\r\n": "HINCRBY",
		"CLIENT NOSUCH secret\r\n": `"CLIENT NOSUCH"`,
	} {
		r := commandstest.New()
		s := r.Session()
		commandstest.Say(t, s, "CLIENT SETNAME checkout\r\n"+strings.Repeat(call, 9))
		if got := r.Log.String(); got != "" {
			t.Errorf("%q: a few are logged: %s", call, got)
		}
		commandstest.Say(t, s, strings.Repeat(call, 500))
		got := r.Log.String()
		if strings.Count(got, "\n") != 1 || !strings.Contains(got,
			"client=192.0.2.1:5000 name=checkout command="+command+" count=10") ||
			strings.Contains(got, "secret") {
			t.Errorf("%q: logged %s", call, got)
		}
		r.Log.Reset()
		r.Clock.Advance(60 * commandstest.Sec)
		commandstest.Say(t, s, strings.Repeat(call, 500))
		if got := r.Log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "count=500") {
			t.Errorf("%q: after a minute: %s", call, got)
		}
	}
	r := commandstest.New()
	long := strings.Repeat(resptest.Encode(strings.Repeat("\x1b", 10_000)), 20)
	commandstest.Say(t, r.Session(), long)
	if got := r.Log.String(); strings.Count(got, "\n") != 1 || len(got) > 600 ||
		strings.Contains(got, "\x1b") {
		t.Errorf("a long name: %d bytes: %.600q", len(got), got)
	}
}

// TestProbes: what clients try whenever they connect is refused in Redis's words, and tells of no fault: not
// by a line, not as the last error, and under no code of this server's.
func TestProbes(t *testing.T) {
	const refused = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n"
	r := commandstest.New()
	s := r.Session()
	for _, call := range []string{
		"CLIENT MAINT_NOTIFICATIONS ON\r\n", "client MAINT_NOTIFICATIONS\r\n", "CLIENT MAINT_NOTIFICATIONS OFF\r\n",
		"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip\r\n",
	} {
		commandstest.Expect(t, s, strings.Repeat(call, 500), strings.Repeat(refused, 500))
	}
	errors := &r.Engine.Records.Errors
	if c := errors.Counts(); c != (observe.ErrorCounts{Total: 2000, Ever: 2000}) || errors.Last() != (observe.LastError{}) ||
		r.Log.String() != "" || len(r.Engine.Records.Refused()) != 0 {
		t.Errorf("counted %+v, last %+v, logged %s", c, errors.Last(), r.Log.String())
	}
	commandstest.Expect(t, s, "MULTI\r\nCLIENT MAINT_NOTIFICATIONS ON\r\nEXEC\r\n",
		"+OK\r\n"+refused+"-EXECABORT Transaction discarded because of previous errors.\r\n")
	commandstest.Expect(t, s, "CLIENT MAINT_NOTIFICATION ON\r\n", "-ERR unknown subcommand 'MAINT_NOTIFICATION'. Try CLIENT HELP.\r\n")
	if c := errors.Counts(); c.Unknown != 1 {
		t.Errorf("counted %+v", c)
	}
}

// TestLastErrorOfSession has its call and client, wherever it ran.
func TestLastErrorOfSession(t *testing.T) {
	for _, tt := range []struct{ in, command, text string }{
		{"CL.THROTTLE k 9 1 1\r\nCL.THROTTLE k 9 x 1\r\n", "CL.THROTTLE k 9 x 1", "Cell error: "},
		{"NOSUCH secret\r\n", "NOSUCH", "ERR unknown command 'NOSUCH'"},
		{"HINCRBY k f 1\r\n", "HINCRBY k f 1", "ERR cellserver keeps limits, not hashes"},
		{"AUTH secret\r\n", "AUTH (redacted)", "ERR AUTH"},
		{"CLIENT KILL 1.2.3.4:5\r\n", "CLIENT KILL", "ERR No such client"},
		{"MULTI\r\nEXPIRE k x\r\nEXEC\r\n", "EXPIRE k x", "ERR value is not an integer"},
		{resptest.Encode("EVAL", "redis.pcall('expire', KEYS[1], 'x') return 1", "1", "k"), "expire k x", "ERR value is not an integer"},
		{resptest.Encode("EVAL", "error('MY error')", "0"), "EVAL", "ERR "},
	} {
		r := commandstest.New()
		commandstest.Say(t, r.Session(), "CLIENT SETNAME checkout\r\n"+tt.in)
		last := r.Engine.Records.Errors.Last()
		if last.Command != tt.command || !strings.HasPrefix(last.Text, tt.text) ||
			last.Client != "192.0.2.1:5000" || last.Name != "checkout" {
			t.Errorf("%q: got %+v", tt.in, last)
		}
	}
	r := commandstest.New()
	commandstest.Say(t, r.Session(), "CL.THROTTLE k 9 1 1\r\n")
	if last := r.Engine.Records.Errors.Last(); last != (observe.LastError{}) {
		t.Errorf("without an error: %+v", last)
	}
}

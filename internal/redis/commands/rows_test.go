package commands_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

// TestArityErrors are read off the table.
func TestArityErrors(t *testing.T) {
	s := commandstest.New().Session()
	catalog.New().Each(func(r *catalog.Command) {
		least := len(strings.Split(r.FullName(), "|"))
		for words := least; words < least+6; words++ {
			if words == r.Arity || r.Arity < 0 && words >= -r.Arity || r.Subs != nil && words > 1 {
				continue
			}
			got := commandstest.Say(t, s, commandstest.CallOf(r, words)+resptest.Encode("PING"))
			code := "-ERR "
			if r.Name == "exec" {
				code = "-EXECABORT Transaction discarded because of: "
			}
			if want := code + "wrong number of arguments for '" + r.FullName() + "' command\r\n" + commandstest.Pong; got != want {
				t.Errorf("%s with %d words: got %q, want %q", r.FullName(), words, got, want)
			}
		}
	})
}

// TestScriptsOff: every command about scripts says how to have them, and is in no list.
func TestScriptsOff(t *testing.T) {
	s := commandstest.New(func(c *commands.Config) { c.Scripts = nil }).Session()
	for _, in := range []string{"EVAL x 0", "EVALSHA x 0", "EVAL_RO x 0", "EVALSHA_RO x 0", "SCRIPT LOAD x", "SCRIPT EXISTS x", "SCRIPT FLUSH", "SCRIPT KILL", "SCRIPT HELP"} {
		commandstest.Expect(t, s, in+"\r\n", "-ERR scripts are off: start the server without --lua=off\r\n")
	}
	if got := commandstest.Say(t, s, "COMMAND INFO eval script script|load subscribe nosuch\r\nCOMMAND DOCS eval script|load\r\nCOMMAND LIST FILTERBY PATTERN *script*\r\n"); got !=
		"*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n*0\r\n*0\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestNoForgedReplies: whatever a client sends, what an error repeats of it stays on the error's line.
func TestNoForgedReplies(t *testing.T) {
	const evil = "x\r\n+OK\r\n$0\r\n\r\n\x00\x1b]0;\x07"
	for _, args := range [][]string{
		{evil}, {"nosuch", evil}, {evil, evil, evil}, {"CL.THROTTLE", "k", evil, evil, evil},
		{"CL.FIXEDWINDOW", "k", evil, "1"}, {"CL.SLIDINGWINDOW", "k", "1", "1", evil}, {"CL.BUCKET", evil, "k"}, {"CL.BUCKET", "TAKE", "k", evil},
		{"CL.BUCKET", "ADD", "k", "1", evil}, {"CL.PEEK", "k", "1", "1", evil}, {"CL.REFUND", "k", evil, "1", "1"}, {"CONFIG", evil},
		{"COMMAND", evil}, {"CLIENT", evil}, {"MODULE", evil}, {"CLIENT", "SETINFO", evil, "x"},
		{"CLIENT", "SETINFO", "LIB-NAME", evil}, {"CLIENT", "SETNAME", evil}, {"HELLO", evil}, {"HELLO", "3", evil},
		{"HELLO", "3", "SETNAME", evil}, {"HELLO", "3", "AUTH", evil, evil}, {"AUTH", evil}, {"AUTH", evil, evil},
		{"SELECT", evil}, {"FLUSHALL", evil}, {"FLUSHDB", evil}, {"COMMAND", "LIST", "FILTERBY", evil, "x"},
	} {
		s := commandstest.New(commandstest.WithPassword("secret")).Session()
		in := resptest.Encode(args...) + resptest.Encode("AUTH", "secret") + resptest.Encode(args...) + resptest.Encode("PING")
		got := commandstest.Say(t, s, in)
		lines := strings.Split(got, "\r\n")
		isError := func(line string) bool {
			return strings.HasPrefix(line, "-") && !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' })
		}
		if len(lines) != 5 || !isError(lines[0]) || lines[1] != "+OK" || !isError(lines[2]) || lines[3] != "+PONG" || lines[4] != "" {
			t.Errorf("%q: got %q", args, got)
		}
	}
}

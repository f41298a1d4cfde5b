package reply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
)

func words(text string) (args [][]byte) {
	for word := range strings.FieldsSeq(text) {
		args = append(args, []byte(word))
	}
	return args
}

// TestUnknownCommand repeats at most 128 bytes of the name, and as many of the arguments together.
func TestUnknownCommand(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct{ call, name, args string }{
		{"nosuch", "nosuch", ""},
		{"nosuch a bb", "nosuch", "'a' 'bb' "},
		{x(129), x(128), ""},
		{"n " + x(129) + " b", "n", "'" + x(128) + "' "},
		{"n " + x(125) + " b", "n", "'" + x(125) + "' "}, // with its quotes and blank it is 128
		{"n " + x(124) + " bb", "n", "'" + x(124) + "' 'b' "},
		{"n " + x(60) + " " + x(60) + " " + x(60), "n", "'" + x(60) + "' '" + x(60) + "' 'xx' "},
	} {
		want := "ERR unknown command '" + tt.name + "', with args beginning with: " + tt.args
		if got := UnknownCommand(words(tt.call), "").Error(); got != want {
			t.Errorf("%s: got %q, want %q", tt.call, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	table := catalog.New()
	get, check := table.LookupFull([]byte("config|get")), table.Lookup([]byte("cl.check"))
	for _, tt := range []struct {
		err  error
		want string
	}{
		{UnknownSubcommand(table.Lookup([]byte("config")), []byte("x\r\n")), `ERR unknown subcommand 'x\r\n'. Try CONFIG HELP.`},
		{UnknownOrArity(words("slowlog GET 1 2")), "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP."},
		{Arity(get), "ERR wrong number of arguments for 'config|get' command"},
		{Arity(check), "ERR wrong number of arguments for 'cl.check' command; usage: CL.CHECK <name> <key> [<quantity>] [DEBIT|ATMOST]"},
		{Of(check, ErrArity), Arity(check).Error()},
		{Of(check, ErrSyntax), "ERR syntax error; usage: CL.CHECK <name> <key> [<quantity>] [DEBIT|ATMOST]"},
		{Of(get, ErrSyntax), "ERR syntax error"},
		{Of(check, ErrOOM), ErrOOM.Error()},
		{UnknownCommand(words("cl.chekc a b"), "cl.check"), "ERR unknown command 'cl.chekc', with args beginning with: 'a' 'b'; did you mean 'cl.check'?"},
		{UnknownSubcommand(table.Lookup([]byte("cl.limit")), []byte("explian")), "ERR unknown subcommand 'explian'. Try CL.LIMIT HELP. Did you mean 'explain'?"},
		{ExecAborted(Arity(get)), "EXECABORT Transaction discarded because of: wrong number of arguments for 'config|get' command"},
		{ExecAborted(ErrNoAuth), "EXECABORT Transaction discarded because of: NOAUTH Authentication required."},
		{KeyTooLong(4096), "ERR key is longer than 4096 bytes, the limit of --max-key-bytes"},
		{TooLong("it is", 7, "--flag"), "ERR it is longer than 7 bytes, the limit of --flag"},
		{Cell("why"), "Cell error: Store error: why"},
		{funnel.ErrZeroRate, "ERR Zero rates are not supported"},
		{fmt.Errorf("wrapped: %w", funnel.ErrTooSlow), "ERR wrapped: " + funnel.ErrTooSlow.Error()},
		{&funnel.ArgumentError{Name: "count", Value: -1}, "ERR count must be at least 0, got -1"},
		{errors.New("ANY text"), "ANY text"},
	} {
		if got := Text(tt.err); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	d := resp.Decoder{Limits: resp.Limits{MaxArgs: 1, MaxCommandBytes: 100}}
	_, _, err := d.Next([]byte("*x\r\n"), nil)
	if got, want := Text(err), "ERR Protocol error: invalid multibulk length"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package docs_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

const maxNames = 128 // of one COMMAND

// TestAnswersAreBounded requests the most that one command may get.
func TestAnswersAreBounded(t *testing.T) {
	s := commandstest.New().Session()
	for _, command := range []string{"COMMAND DOCS", "COMMAND INFO"} {
		most := strings.Repeat(" client", maxNames)
		if got := commandstest.Say(t, s, command+most+"\r\n"); strings.HasPrefix(got, "-") || len(got) > 4<<20 {
			t.Errorf("%s of %d names got %d bytes: %.80q", command, maxNames, len(got), got)
		}
		want := "-ERR more than 128 names or patterns; ask for all of them instead\r\n"
		commandstest.Expect(t, s, command+most+" client\r\n", want)
	}
}

// TestPatternsAreBounded: a pattern longer than any name matches nothing.
func TestPatternsAreBounded(t *testing.T) {
	s := commandstest.New().Session()
	longest := "ping" + strings.Repeat("*", 60)
	for _, tt := range []struct{ pattern, want string }{{longest, "*1\r\n$4\r\nping\r\n"}, {longest + "*", "*0\r\n"}} {
		if got := commandstest.Say(t, s, "COMMAND LIST FILTERBY PATTERN "+tt.pattern+"\r\n"); got != tt.want {
			t.Errorf("%d bytes: got %q, want %q", len(tt.pattern), got, tt.want)
		}
	}
}

// TestGetKeysErrors reports what is wrong with a call.
func TestGetKeysErrors(t *testing.T) {
	s := commandstest.New().Session()
	const invalid, none = "-ERR Invalid command specified\r\n", "-ERR The command has no key arguments\r\n"
	for _, tt := range []struct{ call, want string }{
		{"memory nosuch", invalid},
		{"memory usage", "-ERR Invalid number of arguments specified for command\r\n"},
		{"memory usage k", "*1\r\n$1\r\nk\r\n"},
		{"nosuch x", invalid},
		{"psubscribe x", invalid},
		{"ping x", none},
		{"eval x 0", "*0\r\n"},
		{"eval x 2 a", "*0\r\n"},
		{"evalsha x y", "*0\r\n"},
	} {
		for _, name := range []string{"GETKEYS", "GETKEYSANDFLAGS"} {
			want := tt.want
			if name == "GETKEYSANDFLAGS" && tt.call == "memory usage k" {
				want = "*1\r\n*2\r\n$1\r\nk\r\n*1\r\n+RO\r\n"
			}
			commandstest.Expect(t, s, "COMMAND "+name+" "+tt.call+"\r\n", want)
		}
	}
}

// TestIntrospectionTellsTheTable: COMMAND, COMMAND INFO and COMMAND DOCS match the rows in both protocols.
func TestIntrospectionTellsTheTable(t *testing.T) {
	r := commandstest.New(commandstest.Keeping(t, disktest.New(), time.Second))
	rows := r.Config.Catalog.Shown()
	for _, hello := range []string{"", "HELLO 3\r\n"} {
		s := r.Session()
		commandstest.Say(t, s, hello)
		all := resptest.ParseAll(t, commandstest.Say(t, s, "COMMAND\r\nCOMMAND INFO\r\nCOMMAND DOCS\r\nCOMMAND COUNT\r\n"))
		if len(all) != 4 || len(all[0].Elements) != len(rows) || len(all[1].Elements) != len(rows) ||
			len(all[2].Elements) != 2*len(rows) || int(all[3].Number) != len(rows) {
			t.Fatalf("%q: not one entry for each of %d rows", hello, len(rows))
		}
		for i, row := range rows {
			checkCommand(t, row, all[0].Elements[i])
			checkCommand(t, row, all[1].Elements[i])
			checkDoc(t, row, all[2].Elements[2*i], all[2].Elements[2*i+1])
		}
	}
}

func checkCommand(t *testing.T, r *catalog.Command, got resptest.Reply) {
	t.Helper()
	if len(got.Elements) != 10 {
		t.Fatalf("%s: %d fields", r.FullName(), len(got.Elements))
	}
	e := got.Elements
	if e[0].Text != r.FullName() || e[1].Number != int64(r.Arity) || len(e[2].Elements) != len(r.Flags.Names()) ||
		e[3].Number != int64(r.Keys.First) || e[4].Number != int64(r.Keys.Last) || e[5].Number != int64(r.Keys.Step) ||
		len(e[9].Elements) != len(r.Subs) {
		t.Errorf("%s: got %+v", r.FullName(), got)
	}
	categories := map[string]bool{}
	for _, c := range e[6].Elements {
		if !strings.HasPrefix(c.Text, "@") || categories[c.Text] {
			t.Errorf("%s: category %q, or twice", r.FullName(), c.Text)
		}
		categories[c.Text] = true
	}
	if categories["@fast"] == categories["@slow"] {
		t.Errorf("%s: fast and slow, or neither", r.FullName())
	}
	for i, sub := range r.Subs {
		checkCommand(t, sub, e[9].Elements[i])
	}
}

func checkDoc(t *testing.T, r *catalog.Command, name, doc resptest.Reply) {
	t.Helper()
	if name.Text != r.FullName() || doc.Field("summary").Text != r.Summary || doc.Field("since").Text != r.Since ||
		doc.Field("group").Text != r.Group || doc.Field("complexity").Text != r.Complexity {
		t.Errorf("%s: got %+v", r.FullName(), doc)
	}
	if n := len(doc.Field("arguments").Elements); n != len(r.Args) {
		t.Errorf("%s: %d arguments", r.FullName(), n)
	}
	subs := doc.Field("subcommands").Elements
	if len(subs) != 2*len(r.Subs) {
		t.Fatalf("%s: %d subcommands", r.FullName(), len(subs)/2)
	}
	for i, sub := range r.Subs {
		checkDoc(t, sub, subs[2*i], subs[2*i+1])
	}
}

// TestKeysOfAVeryLongCall are refused: the reply would delay other clients.
func TestKeysOfAVeryLongCall(t *testing.T) {
	s := commandstest.New().Session()
	most := append([]string{"COMMAND", "GETKEYS", "DEL"}, make([]string, 9999)...)
	commandstest.ExpectLike(t, s, resptest.Encode(most...), "*9999\r\n…")
	want := "-ERR more than 10002 arguments for 'command|getkeys'; send fewer at once\r\n"
	commandstest.Expect(t, s, resptest.Encode(append(most, "k")...), want)
}

package commands_test

import (
	"slices"
	"strings"
	"testing"

	"cellserver/internal/catalog"
	"cellserver/internal/commands/rig"
	"cellserver/internal/resptest"
)

// eachCommand visits all commands and subcommands.
func eachCommand(visit func(c *catalog.Command)) { catalog.New().Each(visit) }

// callOf writes a call of a row with so many words, its name in mixed case.
func callOf(r *catalog.Command, words int) string {
	name := strings.Split(r.FullName(), "|")
	args := make([]string, 0, words)
	for _, part := range name {
		args = append(args, strings.ToUpper(part[:1])+part[1:])
	}
	for len(args) < words {
		args = append(args, "1")
	}
	return resptest.Encode(args...)
}

// TestArityErrors are read off the table.
func TestArityErrors(t *testing.T) {
	eachCommand(func(r *catalog.Command) {
		least := len(strings.Split(r.FullName(), "|"))
		for words := least; words < least+6; words++ {
			if words == r.Arity || r.Arity < 0 && words >= -r.Arity || r.Subs != nil && words > 1 {
				continue
			}
			got := rig.Say(t, rig.New().Session(), callOf(r, words)+resptest.Encode("PING"))
			code := "-ERR "
			if r.Name == "exec" {
				code = "-EXECABORT Transaction discarded because of: "
			}
			if want := code + "wrong number of arguments for '" + r.FullName() + "' command\r\n" + rig.Pong; got != want {
				t.Errorf("%s with %d words: got %q, want %q", r.FullName(), words, got, want)
			}
		}
	})
}

// TestNoAuth: of all commands only four run before AUTH.
func TestNoAuth(t *testing.T) {
	free := []string{"auth", "hello", "quit", "reset"}
	eachCommand(func(r *catalog.Command) {
		words := max(r.Arity, -r.Arity)
		if r.Subs != nil && words > 1 {
			return // its subcommands are visited
		}
		got, _, _ := rig.Converse(t, rig.New(rig.WithPassword("secret")).Session(), callOf(r, words))
		if refused := strings.HasSuffix(got, "NOAUTH Authentication required.\r\n"); refused == slices.Contains(free, r.FullName()) {
			t.Errorf("%s before AUTH: got %q", r.FullName(), got)
		}
	})
}

// TestIntrospectionTellsTheTable: COMMAND, COMMAND INFO and COMMAND DOCS say what the rows say, in both protocols.
func TestIntrospectionTellsTheTable(t *testing.T) {
	r := rig.New()
	rows := r.Config.Catalog.Shown()
	for _, hello := range []string{"", "HELLO 3\r\n"} {
		s := r.Session()
		rig.Say(t, s, hello)
		all := resptest.ParseAll(t, rig.Say(t, s, "COMMAND\r\nCOMMAND INFO\r\nCOMMAND DOCS\r\nCOMMAND COUNT\r\n"))
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

package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// eachRow visits all commands and subcommands.
func eachRow(rows []*row, visit func(r *row)) {
	for _, r := range rows {
		visit(r)
		eachRow(r.subs, visit)
	}
}

func TestRowsAreWhole(t *testing.T) {
	table := newRig().engine.table
	name := regexp.MustCompile(`^[a-z]+([._-][a-z]+)?$`)
	version := regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
	seen := map[string]bool{}
	eachRow(table.rows, func(r *row) {
		complain := func(bad bool, what string) {
			if bad {
				t.Errorf("%s: %s", r.fullName(), what)
			}
		}
		complain(!name.MatchString(r.name) || len(r.name) > maxNameBytes, "its name is not lower case, or too long to be found")
		complain(seen[r.fullName()], "it is there twice")
		seen[r.fullName()] = true
		complain(r.summary == "" || strings.HasSuffix(r.summary, ".") || strings.ContainsAny(r.summary, "\r\n"), "no summary, or one with its period")
		complain(!slices.Contains([]string{"connection", "generic", "module", "scripting", "server", "string", "transactions"}, r.group), "group "+r.group)
		complain(!version.MatchString(r.since), "since "+r.since)
		complain(r.complexity == "", "no complexity")
		complain(r.run == nil && r.subs == nil, "nothing runs it")
		complain(r.run != nil && r.subs != nil && !r.acceptsArity(1), "it has subcommands, and only they can be reached")
		complain(r.parent != "" && r.subs != nil, "subcommands of a subcommand")
		complain(r.arity == 0 || r.parent != "" && r.arity > -2 && r.arity < 2, "its arity has no place for its name")
		complain(r.flags&flagWrite != 0 && r.flags&flagReadonly != 0, "it writes and does not")
		complain(r.batches != (r.name == "cl.throttle"), "batches")
		complain((r.flags&shownFlags)>>len(flagNames()) != 0, "a flag without a name")
		complain(table.lookupFull([]byte(r.fullName())) != r, "it is not found")
		complain(table.lookupFull([]byte(strings.ToUpper(r.fullName()))) != r, "it is not found in upper case")
		complain(r.subs != nil && r.sub([]byte("help")) == nil, "no HELP")
	})
	if !slices.IsSortedFunc(table.rows, func(a, b *row) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the rows are not sorted")
	}
}

func TestLookupFindsNothingElse(t *testing.T) {
	table := newRig().engine.table
	for _, name := range []string{"", "pin", "pingg", "ping\x00", "ping ", "\x10ing", "pıng", "config|nosuch", "config|", "|get", "config|get|x",
		"ping|x", "set", "@ing", strings.Repeat("p", maxNameBytes), strings.Repeat("p", maxNameBytes+1)} {
		if r := table.lookupFull([]byte(name)); r != nil {
			t.Errorf("%q: found %s", name, r.fullName())
		}
	}
}

// TestKeySpecsFitArguments: where the arguments say key, there the key specification must point.
func TestKeySpecsFitArguments(t *testing.T) {
	eachRow(newRig().engine.table.rows, func(r *row) {
		at := slices.IndexFunc(r.args, func(a arg) bool { return a.kind == "key" })
		if r.parent != "" && at >= 0 {
			at++ // behind the subcommand's name
		}
		if r.keys.counted > 0 {
			if r.keys.counted != at || r.args[at-1].name != "numkeys" || r.keys.first != 0 {
				t.Errorf("%s: %+v, but its keys begin with argument %d", r.fullName(), r.keys, at+1)
			}
			return
		}
		if (at >= 0) != (r.keys.first > 0) {
			t.Errorf("%s: only one of the arguments and the key specification knows a key", r.fullName())
		}
		if at < 0 {
			if r.keys.last != 0 || r.keys.step != 0 || r.keys.flags != nil || r.flags&(flagWrite|flagReadonly) != 0 && r.flags&flagWhole == 0 {
				t.Errorf("%s: %+v for no key", r.fullName(), r.keys)
			}
			return
		}
		last := r.keys.first
		if r.keys.last < 0 && r.args[at].multiple {
			last = -1
		}
		if r.keys.first != at+1 || r.keys.last != last || r.keys.step != 1 || len(r.keys.flags) == 0 {
			t.Errorf("%s: %+v, but its key is argument %d", r.fullName(), r.keys, at+1)
		}
		if r.flags&(flagWrite|flagReadonly) == 0 && r.name != "watch" {
			t.Errorf("%s: has keys, but neither writes nor reads", r.fullName())
		}
	})
}

func TestEachKey(t *testing.T) {
	for _, tt := range []struct {
		keys keySpec
		args string
		want string
	}{
		{keySpec{}, "ping a", ""},
		{keySpec{first: 1, last: 1, step: 1, flags: nil}, "ttl a", "a"},
		{keySpec{first: 1, last: 1, step: 1, flags: nil}, "cl.throttle a 1 2 3", "a"},
		{keySpec{first: 1, last: 1, step: 1, flags: nil}, "cl.throttle", ""},
		{keySpec{first: 1, last: -1, step: 1, flags: nil}, "del a b c", "a b c"},
		{keySpec{first: 1, last: -1, step: 1, flags: nil}, "del", ""},
		{keySpec{first: 2, last: -2, step: 2, flags: nil}, "x y a b c d e", "a c"},
		{keySpec{counted: 2}, "eval x 2 a b c", "a b"},
		{keySpec{counted: 2}, "eval x 0 a", ""},
		{keySpec{counted: 2}, "eval x 2 a", ""},
		{keySpec{counted: 2}, "eval x -1 a", ""},
		{keySpec{counted: 2}, "eval x y a", ""},
		{keySpec{counted: 2}, "eval x", ""},
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(tt.args) {
			args = append(args, []byte(word))
		}
		var got []string
		tt.keys.eachKey(args, func(key []byte) { got = append(got, string(key)) })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s by %+v: got %q, want %s", tt.args, tt.keys, got, tt.want)
		}
	}
}

// words counts the words of an argument's shortest form.
func (a arg) words() int {
	n := 1
	switch a.kind {
	case "oneof":
		n = a.args[0].words()
	case "block":
		n = 0
		for _, part := range a.args {
			if !part.optional {
				n += part.words()
			}
		}
	}
	if a.token != "" && a.kind != "pure-token" {
		n++
	}
	return n
}

// TestArityFitsArguments: but for QUIT, which takes anything, and CL.THROTTLE, which has an error of its own.
func TestArityFitsArguments(t *testing.T) {
	eachRow(newRig().engine.table.rows, func(r *row) {
		if r.name == "quit" || r.name == "cl.throttle" || r.subs != nil {
			return
		}
		want, open := 1, false
		if r.parent != "" {
			want = 2
		}
		for _, a := range r.args {
			if !a.optional {
				want += a.words()
			}
			open = open || a.optional || a.multiple
		}
		if open {
			want = -want
		}
		if r.arity != want {
			t.Errorf("%s: arity %d, but its arguments make it %d", r.fullName(), r.arity, want)
		}
	})
}

// callOf writes a call of a row with so many words, its name in mixed case.
func callOf(r *row, words int) string {
	name := strings.Split(r.fullName(), "|")
	args := make([]string, 0, words)
	for _, part := range name {
		args = append(args, strings.ToUpper(part[:1])+part[1:])
	}
	for len(args) < words {
		args = append(args, "1")
	}
	return encode(args...)
}

// TestArityErrors are read off the table.
func TestArityErrors(t *testing.T) {
	eachRow(newRig().engine.table.rows, func(r *row) {
		least := len(strings.Split(r.fullName(), "|"))
		for words := least; words < least+6; words++ {
			if words == r.arity || r.arity < 0 && words >= -r.arity || r.subs != nil && words > 1 {
				continue
			}
			got := say(t, newRig().session(), callOf(r, words)+encode("PING"))
			code := "-ERR "
			if r.name == "exec" {
				code = "-EXECABORT Transaction discarded because of: "
			}
			if want := code + "wrong number of arguments for '" + r.fullName() + "' command\r\n" + pong; got != want {
				t.Errorf("%s with %d words: got %q, want %q", r.fullName(), words, got, want)
			}
		}
	})
}

// TestNoAuth: of all commands only four run before AUTH.
func TestNoAuth(t *testing.T) {
	free := []string{"auth", "hello", "quit", "reset"}
	eachRow(newRig().engine.table.rows, func(r *row) {
		words := max(r.arity, -r.arity)
		if r.subs != nil && words > 1 {
			return // its subcommands are visited
		}
		got, _, _ := converse(t, newRig(withPassword("secret")).session(), callOf(r, words))
		if refused := strings.HasSuffix(got, "NOAUTH Authentication required.\r\n"); refused == slices.Contains(free, r.fullName()) {
			t.Errorf("%s before AUTH: got %q", r.fullName(), got)
		}
	})
}

// TestIntrospectionTellsTheTable: COMMAND, COMMAND INFO and COMMAND DOCS say what the rows say, in both protocols.
func TestIntrospectionTellsTheTable(t *testing.T) {
	r := newRig()
	rows := r.engine.table.rows
	for _, hello := range []string{"", "HELLO 3\r\n"} {
		s := r.session()
		say(t, s, hello)
		all := parseReplies(t, say(t, s, "COMMAND\r\nCOMMAND INFO\r\nCOMMAND DOCS\r\nCOMMAND COUNT\r\n"))
		if len(all) != 4 || len(all[0].elements) != len(rows) || len(all[1].elements) != len(rows) ||
			len(all[2].elements) != 2*len(rows) || int(all[3].number) != len(rows) {
			t.Fatalf("%q: not one entry for each of %d rows", hello, len(rows))
		}
		for i, row := range rows {
			checkCommand(t, row, all[0].elements[i])
			checkCommand(t, row, all[1].elements[i])
			checkDoc(t, row, all[2].elements[2*i], all[2].elements[2*i+1])
		}
	}
}

func checkCommand(t *testing.T, r *row, got reply) {
	t.Helper()
	if len(got.elements) != 10 {
		t.Fatalf("%s: %d fields", r.fullName(), len(got.elements))
	}
	e := got.elements
	if e[0].text != r.fullName() || e[1].number != int64(r.arity) || len(e[2].elements) != len(r.flags.names()) ||
		e[3].number != int64(r.keys.first) || e[4].number != int64(r.keys.last) || e[5].number != int64(r.keys.step) ||
		len(e[9].elements) != len(r.subs) {
		t.Errorf("%s: got %+v", r.fullName(), got)
	}
	categories := map[string]bool{}
	for _, c := range e[6].elements {
		if !strings.HasPrefix(c.text, "@") || categories[c.text] {
			t.Errorf("%s: category %q, or twice", r.fullName(), c.text)
		}
		categories[c.text] = true
	}
	if categories["@fast"] == categories["@slow"] {
		t.Errorf("%s: fast and slow, or neither", r.fullName())
	}
	for i, sub := range r.subs {
		checkCommand(t, sub, e[9].elements[i])
	}
}

func checkDoc(t *testing.T, r *row, name, doc reply) {
	t.Helper()
	if name.text != r.fullName() || doc.field("summary").text != r.summary || doc.field("since").text != r.since ||
		doc.field("group").text != r.group || doc.field("complexity").text != r.complexity {
		t.Errorf("%s: got %+v", r.fullName(), doc)
	}
	if n := len(doc.field("arguments").elements); n != len(r.args) {
		t.Errorf("%s: %d arguments", r.fullName(), n)
	}
	subs := doc.field("subcommands").elements
	if len(subs) != 2*len(r.subs) {
		t.Fatalf("%s: %d subcommands", r.fullName(), len(subs)/2)
	}
	for i, sub := range r.subs {
		checkDoc(t, sub, subs[2*i], subs[2*i+1])
	}
}

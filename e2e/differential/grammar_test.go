package differential

import (
	"slices"
	"strings"
	"testing"
)

// grammar is Redis's documentation of the common commands.
type grammar struct {
	forms  []form
	common []string // full names
	others []string // full names of Redis's own
}

type form struct {
	words []string // the name, and the subcommand's
	args  []docArg
}

type docArg struct {
	name, typ, token   string
	optional, multiple bool
	args               []docArg
}

func newGrammar(t *testing.T, p *pair) *grammar {
	t.Helper()
	list := func(h *half) (names []string) {
		got, err := h.do("COMMAND", "LIST")
		if err != nil {
			t.Fatal(err)
		}
		for _, elem := range got.elems {
			names = append(names, elem.text)
		}
		return names
	}
	ours := list(&p.admin.ours)
	docs, err := p.admin.redis.do("COMMAND", "DOCS")
	if err != nil {
		t.Fatal(err)
	}
	g := &grammar{}
	g.add(docs, ours)
	slices.Sort(g.common) // Redis's order varies; a seed must lead to the same calls
	slices.SortFunc(g.forms, func(a, b form) int { return slices.Compare(a.words, b.words) })
	if len(g.forms) < 80 {
		t.Fatalf("both servers have %d commands", len(g.forms))
	}
	return g
}

func (g *grammar) add(docs value, ours []string) {
	for i := 0; i+1 < len(docs.elems); i += 2 {
		name := docs.elems[i].text
		if !slices.Contains(ours, name) {
			g.others = append(g.others, name)
			continue
		}
		g.common = append(g.common, name)
		doc := docs.elems[i+1]
		g.forms = append(g.forms, form{strings.Split(strings.ToUpper(name), "|"), docArgs(field(doc, "arguments"))})
		g.add(field(doc, "subcommands"), ours)
	}
}

// has reports whether a call avoids Redis's own commands; one that neither has is an error in both.
func (g *grammar) has(name, sub string) bool {
	return !slices.Contains(g.others, name) && !slices.Contains(g.others, name+"|"+sub)
}

// field returns the element after a name.
func field(v value, name string) value {
	for i := 0; i+1 < len(v.elems); i += 2 {
		if v.elems[i].text == name {
			return v.elems[i+1]
		}
	}
	return value{}
}

func docArgs(v value) (args []docArg) {
	for _, elem := range v.elems {
		a := docArg{name: field(elem, "name").text, typ: field(elem, "type").text, token: field(elem, "token").text}
		for _, flag := range field(elem, "flags").elems {
			a.optional = a.optional || flag.text == "optional"
			a.multiple = a.multiple || flag.text == "multiple"
		}
		a.args = docArgs(field(elem, "arguments"))
		args = append(args, a)
	}
	return args
}

// call returns a documented form of a random command.
func (g *grammar) call(m *callMaker) []string {
	f := g.forms[m.IntN(len(g.forms))]
	return m.documented(slices.Clone(f.words), f.args)
}

func (m *callMaker) documented(call []string, args []docArg) []string {
	for _, a := range args {
		if a.optional && m.IntN(3) > 0 {
			continue
		}
		times := 1
		if a.multiple {
			times += m.IntN(3)
		}
		for range times {
			call = m.argument(call, a)
		}
	}
	return call
}

func (m *callMaker) argument(call []string, a docArg) []string {
	if a.token != "" {
		call = append(call, strings.Trim(a.token, `"`))
	}
	switch a.typ {
	case "pure-token":
		return call
	case "oneof":
		return m.argument(call, a.args[m.IntN(len(a.args))])
	case "block":
		return m.documented(call, a.args)
	case "key":
		return append(call, m.key())
	case "pattern":
		return append(call, m.pattern())
	case "integer", "unix-time", "double":
		return append(call, m.documentedNumber(a.name))
	}
	return append(call, m.text(a.name))
}

func (m *callMaker) documentedNumber(name string) string {
	switch name {
	case "numkeys":
		return m.pick("0", "1", "2")
	case "index":
		return m.database()
	case "client-id":
		return m.pick("{id}", "{other}", "999999")
	case "protover":
		return m.pick("2", "3")
	}
	return m.pick("0", "1", "-1", "10", "1000")
}

func (m *callMaker) text(name string) string {
	switch name {
	case "username":
		return m.pick("default", "alice", "bob", "carol", "dave", "nobody")
	case "password":
		return m.pick("sesame", "wonderland", "builder", "x")
	case "script":
		return m.script()
	case "sha1":
		return m.fill([]string{"H"})[0]
	case "command", "command-name":
		f := m.grammar.forms[m.IntN(len(m.grammar.forms))]
		return strings.Join(f.words, m.pick("|", " "))
	case "category":
		return m.pick("read", "write", "Keyspace", "connection", "nosuch")
	case "section":
		return m.pick("server", "Clients", "keyspace", "all", "nosuch")
	case "parameter":
		return m.pick("timeout", "databases", "maxclients", "*", "nosuch")
	case "type":
		return m.pick("normal", "string", "nosuch")
	}
	return m.pick("x", m.word(), m.key())
}

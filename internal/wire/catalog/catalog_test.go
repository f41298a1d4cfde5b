package catalog

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRowsAreWhole(t *testing.T) {
	table := New()
	name := regexp.MustCompile(`^[a-z]+([._-][a-z]+)?$`)
	version := regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
	seen := map[string]bool{}
	table.Each(func(r *Command) {
		complain := func(bad bool, what string) {
			if bad {
				t.Errorf("%s: %s", r.FullName(), what)
			}
		}
		complain(!name.MatchString(r.Name) || len(r.Name) > maxNameBytes, "its name is not lower case, or too long to be found")
		complain(seen[r.FullName()], "it is there twice")
		seen[r.FullName()] = true
		complain(r.Summary == "" || strings.HasSuffix(r.Summary, ".") || strings.ContainsAny(r.Summary, "\r\n"), "no summary, or one with its period")
		complain(!slices.Contains([]string{"connection", "generic", "module", "pubsub", "scripting", "server", "string", "transactions"}, r.Group), "group "+r.Group)
		complain(!version.MatchString(r.Since), "since "+r.Since)
		complain(r.Complexity == "", "no complexity")
		complain(r.Parent != "" && r.Subs != nil, "subcommands of a subcommand")
		complain(r.Arity == 0 || r.Parent != "" && r.Arity > -2 && r.Arity < 2, "its arity has no place for its name")
		complain(r.Flags&FlagWrite != 0 && r.Flags&FlagReadonly != 0, "it writes and does not")
		complain((r.Flags&shownFlags)>>len(flagNames()) != 0, "a flag without a name")
		complain(table.LookupFull([]byte(r.FullName())) != r, "it is not found")
		complain(table.LookupFull([]byte(strings.ToUpper(r.FullName()))) != r, "it is not found in upper case")
		complain(r.Subs != nil && r.Sub([]byte("help")) == nil, "no HELP")
	})
	if !slices.IsSortedFunc(table.Shown(), func(a, b *Command) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the rows are not sorted")
	}
}

func TestLookupFindsNothingElse(t *testing.T) {
	table := New()
	for _, name := range []string{"", "pin", "pingg", "ping\x00", "ping ", "\x10ing", "pıng", "config|nosuch", "config|", "|get", "config|get|x",
		"ping|x", "pfadd", "@ing", strings.Repeat("p", maxNameBytes), strings.Repeat("p", maxNameBytes+1)} {
		if r := table.LookupFull([]byte(name)); r != nil {
			t.Errorf("%q: found %s", name, r.FullName())
		}
	}
}

// keyAt returns the index of the argument that is joined to a name.
func keyAt(r *Command) int {
	if r.Parent != "" {
		return r.Keys.Joined - 1
	}
	return r.Keys.Joined
}

// TestKeySpecsFitArguments: where the arguments say key, there the key specification must point.
func TestKeySpecsFitArguments(t *testing.T) {
	New().Each(func(r *Command) {
		at := slices.IndexFunc(r.Args, func(a Arg) bool {
			return a.Type == "key" || a.Type == "block" && (a.Args[0].Type == "key" || r.Keys.Pairs && a.Name == "pair")
		})
		many := at >= 0 && r.Args[at].Multiple
		if r.Parent != "" && at >= 0 {
			at++ // behind the subcommand's name
		}
		if r.Keys.Counted > 0 {
			if r.Keys.Counted != at || r.Args[at-1].Type != "integer" || r.Keys.First != 0 || 1+r.Keys.With != r.Args[at].words() {
				t.Errorf("%s: %+v, but its keys begin with argument %d", r.FullName(), r.Keys, at+1)
			}
			return
		}
		if r.Keys.Joined > 0 {
			if r.Keys.First != 0 || r.Flags&FlagMovableKeys == 0 || len(r.Args) <= keyAt(r) || r.Args[keyAt(r)].Name != "key" {
				t.Errorf("%s: %+v, but not for two arguments of which the second is called key", r.FullName(), r.Keys)
			}
			return
		}
		if (at >= 0) != (r.Keys.First > 0) {
			t.Errorf("%s: only one of the arguments and the key specification knows a key", r.FullName())
		}
		if at < 0 {
			if r.Keys.Last != 0 || r.Keys.Step != 0 || r.Keys.Flags != nil || r.Flags&(FlagWrite|FlagReadonly) != 0 && r.Flags&FlagWhole == 0 {
				t.Errorf("%s: %+v for no key", r.FullName(), r.Keys)
			}
			return
		}
		last, step := r.Keys.First, 1
		if many {
			last, step = -1, r.Args[at].words()
		} else if r.Keys.SecondFlags != nil && r.Args[at+1].Type == "key" {
			last++
		}
		if r.Keys.First != at+1 || r.Keys.Last != last || r.Keys.Step != step || len(r.Keys.Flags) == 0 {
			t.Errorf("%s: %+v, but its key is argument %d", r.FullName(), r.Keys, at+1)
		}
		if r.Flags&(FlagWrite|FlagReadonly) == 0 && r.Name != "watch" {
			t.Errorf("%s: has keys, but neither writes nor reads", r.FullName())
		}
	})
}

func TestEachKey(t *testing.T) {
	for _, tt := range []struct {
		keys KeySpec
		args string
		want string
	}{
		{KeySpec{}, "ping a", ""},
		{KeySpec{First: 1, Last: 1, Step: 1, Flags: nil}, "ttl a", "a"},
		{KeySpec{First: 1, Last: 1, Step: 1, Flags: nil}, "cl.throttle a 1 2 3", "a"},
		{KeySpec{First: 1, Last: 1, Step: 1, Flags: nil}, "cl.throttle", ""},
		{KeySpec{First: 1, Last: -1, Step: 1, Flags: nil}, "del a b c", "a b c"},
		{KeySpec{First: 1, Last: -1, Step: 1, Flags: nil}, "del", ""},
		{KeySpec{First: 2, Last: -2, Step: 2, Flags: nil}, "x y a b c d e", "a c"},
		{KeySpec{First: 1, Last: 0, Step: 1}, "del a b", ""},
		{KeySpec{Counted: 2}, "eval x 2 a b", "a b"},
		{KeySpec{Counted: 2}, "eval x 2 a b c", "a b"},
		{KeySpec{Counted: 2}, "eval x 0 a", ""},
		{KeySpec{Counted: 2}, "eval x 2 a", ""},
		{KeySpec{Counted: 2}, "eval x -1 a", ""},
		{KeySpec{Counted: 2}, "eval x y a", ""},
		{KeySpec{Counted: 2}, "eval x", ""},
		{KeySpec{Joined: 1}, "cl.check a b 1", "a:b"},
		{KeySpec{Joined: 1}, "cl.check a:b :", "a:b::"},
		{KeySpec{Joined: 2}, "x y a b", "a:b"},
		{KeySpec{Joined: 1}, "cl.check a", ""},
		{KeySpec{Counted: 1, With: 2}, "x 2 a 1 2 b 3 4", "a b"},
		{KeySpec{Counted: 1, With: 2}, "x 2 a 1 2 b 3 4 c 5 6", "a b"},
		{KeySpec{Counted: 1, With: 2}, "x 1 a 1 2", "a"},
		{KeySpec{Counted: 1, With: 2}, "x 2 a 1 2 b 3", ""},
		{KeySpec{Counted: 1, With: 2}, "x 0 a 1 2", ""},
		{KeySpec{Counted: 1, With: 2}, "x -1 a 1 2", ""},
		{KeySpec{Counted: 1, With: 2}, "x 9223372036854775807 a 1 2", ""},
		{KeySpec{Counted: 1, With: 2}, "x +1 a 1 2", ""},
	} {
		args := split(tt.args)
		var got []string
		tt.keys.Each(args, func(key []byte) { got = append(got, string(key)) })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s by %+v: got %q, want %s", tt.args, tt.keys, got, tt.want)
		}
	}
}

// words counts the words of an argument's shortest form.
func (a Arg) words() int {
	n := 1
	switch a.Type {
	case "oneof":
		n = a.Args[0].words()
	case "block":
		n = 0
		for _, part := range a.Args {
			if !part.Optional {
				n += part.words()
			}
		}
	}
	if a.Token != "" && a.Type != "pure-token" {
		n++
	}
	return n
}

// TestArityFitsArguments: but for QUIT, which takes anything, CL.THROTTLE and those like it, which have an
// error of their own, and what has subcommands, of which only COMMAND may stand alone.
func TestArityFitsArguments(t *testing.T) {
	New().Each(func(r *Command) {
		if alone := r.Name == "quit" || r.Batches && r.Group == "module" && r.Keys.Joined == 0 || r.Name == "cl.peek" || r.Name == "command"; alone || r.Subs != nil {
			if alone && r.Arity != -len(strings.Split(r.FullName(), "|")) || !alone && r.Arity != -2 {
				t.Errorf("%s: arity %d", r.FullName(), r.Arity)
			}
			return
		}
		want, open := 1, false
		if r.Parent != "" {
			want = 2
		}
		for _, a := range r.Args {
			if !a.Optional {
				want += a.words()
			}
			open = open || a.Optional || a.Multiple
		}
		if open {
			want = -want
		}
		if r.Arity != want {
			t.Errorf("%s: arity %d, but its arguments make it %d", r.FullName(), r.Arity, want)
		}
	})
}

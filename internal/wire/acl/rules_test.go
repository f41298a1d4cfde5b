package acl

import (
	"slices"
	"strings"
	"testing"
)

const (
	hashOfA     = "#ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	hashOfB     = "#3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
	hashOfEmpty = "#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// TestRules compares lines of rules with the output of ACL LIST. Those without a comment were verified with
// ACL SETUSER of redis-server 7.0.15, whose output differs only by the additional commands of its categories.
func TestRules(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{"", "off resetchannels -@all"},
		{"ON", "on resetchannels -@all"},
		{"on OFF", "off resetchannels -@all"},
		{"on nopass skip-sanitize-payload", "on nopass skip-sanitize-payload resetchannels -@all"},
		{"skip-sanitize-payload sanitize-payload", "off sanitize-payload resetchannels -@all"},
		{"skip-sanitize-payload >a off", "off skip-sanitize-payload " + hashOfA + " resetchannels -@all"},
		{">a >a >b", "off " + hashOfA + " " + hashOfB + " resetchannels -@all"},
		{">a >b <b", "off " + hashOfA + " resetchannels -@all"},
		{">", "off " + hashOfEmpty + " resetchannels -@all"},
		{">a nopass", "off nopass resetchannels -@all"},
		{"nopass >a", "off " + hashOfA + " resetchannels -@all"},
		{"nopass resetpass", "off resetchannels -@all"},
		{hashOfA + " !" + hashOfA[1:], "off resetchannels -@all"},

		{"~", "off ~ resetchannels -@all"},
		{"~a %R~b ~b %W~a", "off ~a ~b resetchannels -@all"},
		{"%R~a %W~a", "off ~a resetchannels -@all"},
		{"%rw~x %WR~y", "off ~x ~y resetchannels -@all"},
		{"%R", "off %R~ resetchannels -@all"},
		{"%R~*", "off %R~* resetchannels -@all"},
		{"%R~* %W~*", "off ~* resetchannels -@all"},
		{"~a allkeys", "off ~* resetchannels -@all"},
		{"~a allkeys resetkeys", "off resetchannels -@all"},
		{"~a allkeys resetkeys ~b", "off ~b resetchannels -@all"},
		{"~a %RW~*", "off ~* resetchannels -@all"}, // Redis shows ~a as well, and cannot read its own output
		{"&", "off resetchannels & -@all"},
		{"&a &a &b", "off resetchannels &a &b -@all"},
		{"&a allchannels", "off &* -@all"},
		{"&a allchannels resetchannels", "off resetchannels -@all"},

		{"ALLCOMMANDS", "off resetchannels +@all"},
		{"+@ALL -GET", "off resetchannels +@all -get"},
		{"+@all -@all +@all", "off resetchannels +@all"},
		{"+@all -get +get", "off resetchannels +@all"},
		{"+@all nocommands", "off resetchannels -@all"},
		{"+@Read", "off resetchannels -@all +@read"},
		{"+@read +@write", "off resetchannels -@all +@read +@write"}, // equal numbers; Redis has more that write
		{"+@all -@read", "off resetchannels +@all -@read"},
		{"+@all -@dangerous", "off resetchannels +@all -@dangerous"}, // not by -@admin
		{"+@admin", "off resetchannels -@all +@admin"},
		{"+@admin -config", "off resetchannels -@all +debug"}, // as many commands of the categories agree as differ
		{"+@keyspace -ttl", "off resetchannels -@all +del"},
		{"+@hash", "off resetchannels -@all"}, // this category has no commands here
		{"+config", "off resetchannels -@all +config"},
		{"+config -config|set", "off resetchannels -@all +config -config|set"},
		{"+config|get -config", "off resetchannels -@all"},
		{"+CONFIG|GET", "off resetchannels -@all +config|get"},
		{"+@all -config|get", "off resetchannels +@all -config|get"},
		{"+@all -config +config|get", "off resetchannels +@all -config +config|get"},
		{"+@slow", "off resetchannels -@all +@slow"},
		{"+cl.throttle", "off resetchannels -@all +cl.throttle"},

		{"+get|x", "off resetchannels -@all +get|x"},
		{"+get|X +get|x +GET|y", "off resetchannels -@all +get|X +get|y"},
		{"+get|x +get", "off resetchannels -@all +get"},
		{"+get|x -get", "off resetchannels -@all"},
		{"+get|x +@read -@read", "off resetchannels -@all"},
		{"+get|x +@all", "off resetchannels +@all"},
		{"+@all -get +get|x", "off resetchannels +@all -get +get|x"},
		{"+@all +get|x -@all", "off resetchannels -@all"},

		{"()", "off resetchannels -@all (resetchannels -@all)"},
		{"( )", "off resetchannels -@all (resetchannels -@all)"},
		{"(+get) (%R~a +set)", "off resetchannels -@all (resetchannels -@all +get) (%R~a resetchannels -@all +set)"},
		{"( ~a +get )", "off resetchannels -@all (~a resetchannels -@all +get)"},
		{"(%R~y allchannels +@all -config|set)", "off resetchannels -@all (%R~y &* +@all -config|set)"},
		{"(~(x)", "off resetchannels -@all (~(x resetchannels -@all)"},
		{"~( ~a) ~(b)", "off ~( ~a) ~(b) resetchannels -@all"},
		{"(+get) clearselectors", "off resetchannels -@all"},
		{"on >a ~a &b +get (+get) reset", "off sanitize-payload resetchannels -@all"},

		// Not in Redis: commands that only Redis has.
		{"+hset -flushall +hset|x", "off resetchannels -@all"},
		{"+config|rewrite -config|rewrite +xgroup|create", "off resetchannels -@all"},
		{"+debug|sleep +debug|object", "off resetchannels -@all +debug|sleep"},
		{"+cluster|info", "off resetchannels -@all +cluster|info"},
		{"+@all -cluster|reset", "off resetchannels +@all -cluster"},
	} {
		users := loaded(t, strings.TrimSpace("user x "+c.rules))
		if got := users.Lookup("x").Line(); got != "user x "+c.want {
			t.Errorf("%s\n got %s\nwant user x %s", c.rules, got, c.want)
		}
	}
}

// TestBadRules: Redis's errors, verified with ACL SETUSER and ACL LOAD of redis-server 7.0.15.
func TestBadRules(t *testing.T) {
	unknown := func(rule string) string {
		return "Error in applying operation '" + rule + "': Unknown command or category name in ACL"
	}
	for _, c := range []struct{ rules, want string }{
		{"foo", "Syntax error"},
		{"+all", unknown("+all")},
		{"+nosuch", unknown("+nosuch")},
		{"-nosuch", unknown("-nosuch")},
		{"+@nosuch", unknown("+@nosuch")},
		{"+@", unknown("+@")},
		{"+", unknown("+")},
		{"-", unknown("-")},
		{"-get|x", unknown("-get|x")},
		{"+get|", "Syntax error"},
		{"+get|a|b", unknown("+get|a|b")},
		{"+hset|", "Syntax error"},
		{"+config|", "Syntax error"},
		{"-config|", unknown("-config|")},
		{"+config|nosuch", unknown("+config|nosuch")},
		{"-config|nosuch", unknown("-config|nosuch")},
		{"+xgroup|nosuch", unknown("+xgroup|nosuch")},
		{"+config|get|x", "Allowing first-arg of a subcommand is not supported"},
		{"+xgroup|create|x", "Allowing first-arg of a subcommand is not supported"},
		{"<b", errNoSuchPassword.Error()},
		{"nopass <a", errNoSuchPassword.Error()},
		{"#abc", errHash.Error()},
		{"!abc", errHash.Error()},
		{"# comment", errHash.Error()},
		{"#" + strings.ToUpper(hashOfA[1:]), errHash.Error()},
		{"#" + strings.Repeat("g", 64), errHash.Error()},
		{"%~foo", "Syntax error"},
		{"%RR~foo", "Syntax error"},
		{"%", "Syntax error"},
		{"~a\tb", "Syntax error"},
		{"&a\vb", "Syntax error"},
		{"allkeys ~a", errAfterAll.Error()},
		{"~* %R~a", errAfterAll.Error()},
		{"&* &a", errAfterAllChannels.Error()},
		{"(on)", "Syntax error"},
		{"(>a)", "Syntax error"},
		{"(+nosuch +other)", unknown("(+nosuch +other)")},
		{"(~a (+get))", "Syntax error"},
		{"(~a (+get)", "Syntax error"},
		{"(~a ~* ~b)", errAfterAll.Error()},
		{"(+get", errParenthesis.Error()}, // crashes redis-server 7.0.15 in a file
		{")", "Syntax error"},
		{"(~\"a)", errQuotes.Error()}, // Redis ignores the whole selector
		{"(~x))", "Syntax error"},     // Redis cannot read its own output
	} {
		_, err := NewUsers(testCommands()).Load("f", "user x "+c.rules)
		want := "f:1: " + c.want + ". WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", c.rules, err, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	users := loaded(t, "user x on >a skip-sanitize-payload ~a* %R~b &c +@read (~z +set) ( allkeys allchannels +@all )")
	d := users.Lookup("x").Describe()
	want := Description{
		Flags:       []string{"on", "skip-sanitize-payload"},
		Passwords:   []string{hashOfA[1:]},
		Permissions: Permissions{Commands: "-@all +@read", Keys: "~a* %R~b", Channels: "&c"},
		Selectors:   []Permissions{{"-@all +set", "~z", ""}, {"+@all", "~*", "&*"}},
	}
	if !slices.Equal(d.Flags, want.Flags) || !slices.Equal(d.Passwords, want.Passwords) ||
		d.Permissions != want.Permissions || !slices.Equal(d.Selectors, want.Selectors) {
		t.Errorf("got %+v, want %+v", d, want)
	}
}

func TestCategories(t *testing.T) {
	users := NewUsers(append(testCommands(), Command{Name: "x", Categories: []string{"own"}}))
	all := users.Categories()
	if len(all) != 22 || all[0] != "keyspace" || all[20] != "scripting" || all[21] != "own" {
		t.Errorf("categories: %q", all)
	}
	if names, ok := users.CommandsIn("ADMIN"); !ok || strings.Join(names, " ") != "config|get config|set debug debug|sleep" {
		t.Errorf("admin: %q %t", names, ok)
	}
	if names, ok := users.CommandsIn("hash"); !ok || len(names) != 0 {
		t.Errorf("hash: %q %t", names, ok)
	}
	if _, ok := users.CommandsIn("nosuch"); ok {
		t.Error("a category that nobody knows")
	}
}

package catalog

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/wire/acl"
)

// split returns the words of a call.
func split(call string) (args [][]byte) { return bytes.Fields([]byte(call)) }

// usersOf returns the users of an aclfile's text.
func usersOf(t *testing.T, table *Catalog, text string) *acl.Users {
	t.Helper()
	users := acl.NewUsers(table.ForRules())
	if _, err := users.Load("users.acl", text); err != nil {
		t.Fatal(err)
	}
	return users
}

// TestOf numbers what is shown by name, and what is refused behind it.
func TestOf(t *testing.T) {
	longest := strings.Repeat("l", maxNameBytes)
	table := Of([]*Command{
		{Name: "refused", Refusal: "no"},
		{Name: longest},
		{Name: "box", Group: "server", Subs: []*Command{{Name: "open"}, {Name: "close", Flags: FlagNoAuth}}},
	})
	var names []string
	for id, c := range table.Commands() {
		if names = append(names, c.FullName()); c.ID != id {
			t.Errorf("%s has ID %d at %d", c.FullName(), c.ID, id)
		}
	}
	if want := []string{"box", "box|close", "box|open", longest, "refused"}; !slices.Equal(names, want) {
		t.Errorf("commands are %q, want %q", names, want)
	}
	if sub := table.LookupShown([]byte("BOX|Open")); sub == nil || sub.Parent != "box" || sub.Group != "server" {
		t.Errorf("found %+v", sub)
	}
	if table.Lookup([]byte(longest)) == nil {
		t.Error("the longest name is not found")
	}
	for _, name := range []string{"refused", "nosuch"} {
		if c := table.LookupShown([]byte(name)); c != nil {
			t.Errorf("%s is shown", name)
		}
	}
	rules := table.ForRules()
	if len(rules) != 4 || rules[1].Name != "box|close" || rules[1].Parent != "box" || !rules[1].NoAuth || rules[2].NoAuth {
		t.Errorf("rules know %+v", rules)
	}
}

// TestWithout: what is refused keeps its ID, its subcommands are refused as well, and the first catalog stays
// as it was.
func TestWithout(t *testing.T) {
	table := New()
	less := table.Without("switched off", "eval", "script")
	for _, name := range []string{"eval", "script", "script|load"} {
		before, after := table.LookupFull([]byte(name)), less.LookupFull([]byte(name))
		if after.Refusal != "switched off" || after.ID != before.ID || before.Refusal != "" || less.Commands()[after.ID] != after ||
			table.Commands()[before.ID] != before || less.LookupShown([]byte(name)) != nil {
			t.Errorf("%s: %+v", name, after)
		}
	}
	if len(less.Shown()) != len(table.Shown())-2 || len(less.ForRules()) != len(table.ForRules()) {
		t.Errorf("%d of %d commands are shown", len(less.Shown()), len(table.Shown()))
	}
	if ping := []byte("ping"); less.Lookup(ping) != table.Lookup(ping) {
		t.Error("PING is another command")
	}
}

func TestKeySpec(t *testing.T) {
	for _, tt := range []struct {
		keys   KeySpec
		none   bool
		access acl.Access
	}{
		{KeySpec{}, true, 0},
		{oneKey(1, "RO"), false, 0},
		{oneKey(2, "RO", "access"), false, acl.Read},
		{manyKeys("RM", "delete"), false, acl.Write},
		{KeySpec{Counted: 2, Flags: []string{"RW", "access", "update"}}, false, acl.Read | acl.Write},
	} {
		if tt.keys.None() != tt.none || tt.keys.Access(nil) != tt.access {
			t.Errorf("%+v: none %t, access %b", tt.keys, tt.keys.None(), tt.keys.Access(nil))
		}
	}
}

// TestKeysThatAreReadByOption: a call without it takes less.
func TestKeysThatAreReadByOption(t *testing.T) {
	table := New()
	for args, want := range map[string]string{
		"set k v":               "OW update",
		"set k v nx px 5":       "OW update",
		"set get get":           "OW update",
		"set k v get":           "RW access update",
		"set k v EX 5 GeT xx":   "RW access update",
		"set k":                 "OW update",
		"set":                   "OW update",
		"set k v nosuch getget": "OW update",
		"set k v ifeq w":        "RW access update",
		"set k v EX 5 IfDne w":  "RW access update",
		"set ifeq ifeq":         "OW update",
		"delex k":               "RM delete",
		"delex k IFNE v":        "RW access delete",
		"delex k nosuch ifeq":   "RW access delete",
	} {
		words := split(args)
		keys := table.Lookup(words[0]).Keys
		access := acl.Write
		if strings.Contains(want, "access") {
			access |= acl.Read
		}
		if got := strings.Join(keys.FlagsOf(words), " "); got != want || keys.Access(words) != access {
			t.Errorf("%s: flags %s, access %b", args, got, keys.Access(words))
		}
	}
}

// TestCheck names the command or the key that a user's rules do not allow.
func TestCheck(t *testing.T) {
	table := New()
	users := usersOf(t, table, "user app on nopass ~a* +ping +del +config|get +cl.throttle +cl.reset (~b* +cl.throttle) (~c* +cl.reset) (~b* +cl.bucket|take) (~b* +cl.slidingwindow)\nuser caller on nopass ~* +cl.throttle")
	for _, tt := range []struct {
		command, args, object string
		reason                acl.Reason
		refund                bool
	}{
		{"ping", "ping", "", acl.Allowed, false},
		{"ping", "ping x", "", acl.Allowed, false},
		{"config|get", "config get x", "", acl.Allowed, false},
		{"config|set", "config set x y", "config|set", acl.DeniedCommand, false},
		{"del", "del a1 a2", "", acl.Allowed, false},
		{"del", "del a1 b a2", "b", acl.DeniedKey, false},
		{"del", "del", "", acl.Allowed, false},
		{"ttl", "ttl a", "ttl", acl.DeniedCommand, false},
		{"cl.throttle", "cl.throttle a 1 1 1", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b 1 1 1 1", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b 1 1 1 0", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b 1 1 1 -0", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b 1 1 1 -x", "", acl.Allowed, false}, // an error, later
		{"cl.throttle", "cl.throttle b 1 1 1 -", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b -1 -1 -1", "", acl.Allowed, false}, // an error, later
		{"cl.throttle", "cl.throttle", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle a 1 1 1 -1", "", acl.Allowed, false},
		{"cl.throttle", "cl.throttle b 1 1 1 -1", "b", acl.DeniedKey, true},
		{"cl.throttle", "cl.throttle b 1 1 1 -01", "b", acl.DeniedKey, true},
		{"cl.throttle", "cl.throttle b 1 1 1 -9223372036854775808", "b", acl.DeniedKey, true},
		{"cl.throttle", "cl.throttle c 1 1 1 -1", "c", acl.DeniedKey, false}, // the rule with CL.RESET has no CL.THROTTLE
		{"cl.bucket|take", "cl.bucket take b 9 1", "", acl.Allowed, false},
		{"cl.bucket|take", "cl.bucket take a 9 1", "a", acl.DeniedKey, false},
		{"cl.bucket|take", "cl.bucket take b 9 -1", "b", acl.DeniedKey, true},
		{"cl.bucket|add", "cl.bucket add b 9 -1", "cl.bucket|add", acl.DeniedCommand, false},
		{"cl.slidingwindow", "cl.slidingwindow b 9 1 approx", "", acl.Allowed, false},
		{"cl.slidingwindow", "cl.slidingwindow b 9 1 -1 approx", "b", acl.DeniedKey, true},
	} {
		args := split(tt.args)
		reason, object, refund := table.LookupFull([]byte(tt.command)).Check(users.Lookup("app"), args)
		if reason != tt.reason || object != tt.object || refund != tt.refund {
			t.Errorf("%s: %v %q %t, want %v %q %t", tt.args, reason, object, refund, tt.reason, tt.object, tt.refund)
		}
	}
	refund := split("cl.throttle a 1 1 1 -1")
	if reason, object, refund := table.LookupFull(refund[0]).Check(users.Lookup("caller"), refund); reason != acl.DeniedCommand || object != "cl.reset" || !refund {
		t.Errorf("a user without CL.RESET: %v %q %t", reason, object, refund)
	}
}

// TestRefillsHaveACategory, by which rules can keep them from whom they would let through.
func TestRefillsHaveACategory(t *testing.T) {
	var got []string
	New().Each(func(c *Command) {
		if slices.Contains(c.AllCategories(), "refill") {
			got = append(got, c.FullName())
		}
	})
	if want := strings.Fields("cl.bucket|add cl.bucket|reset cl.refund cl.reset flushall flushdb"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestChecksOfCallsAllocateNothing, for a user with rules.
func TestChecksOfCallsAllocateNothing(t *testing.T) {
	table := New()
	users := usersOf(t, table, "user app on nopass ~a* +cl.throttle +cl.reset")
	user, c := users.Lookup("app"), table.Lookup([]byte("cl.throttle"))
	for _, quantity := range []string{"1", "-1"} {
		args := split("cl.throttle a 1 1 1 " + quantity)
		n := testing.AllocsPerRun(100, func() {
			if reason, _, _ := c.Check(user, args); reason != acl.Allowed {
				t.Error(reason)
			}
		})
		if n > 0 {
			t.Errorf("a quantity of %s: %g allocations", quantity, n)
		}
	}
}

// TestRefundsNeedReset: for each command with a quantity, the quantity of the key alone decides.
func TestRefundsNeedReset(t *testing.T) {
	table := New()
	users := usersOf(t, table, "user app on nopass ~a* +@all\nuser caller on nopass ~a* +@all -cl.reset")
	var got []string
	table.Each(func(c *Command) {
		if c.QuantityAt == 0 {
			return
		}
		got = append(got, c.FullName())
		args := make([][]byte, c.QuantityAt+1)
		for i := range args {
			args[i] = []byte("1")
		}
		args[max(c.Keys.First, c.Keys.Joined)], args[c.QuantityAt] = []byte("a"), []byte("-1")
		if reason, object, _ := c.Check(users.Lookup("app"), args); reason != acl.Allowed {
			t.Errorf("%s: %v %q", c.FullName(), reason, object)
		}
		if reason, object, refund := c.Check(users.Lookup("caller"), args); reason != acl.DeniedCommand || object != "cl.reset" || !refund {
			t.Errorf("%s without CL.RESET: %v %q %t", c.FullName(), reason, object, refund)
		}
	})
	if want := strings.Fields("cl.bthrottle cl.bucket|take cl.check cl.fixedwindow cl.pthrottle cl.quota cl.slidingwindow cl.throttle cl.tokenbucket rl.throttle"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBatched lists the commands that reply five integers.
func TestBatched(t *testing.T) {
	want := strings.Fields("cl.bucket|take cl.check cl.debit cl.fixedwindow cl.pthrottle cl.quota cl.refund cl.slidingwindow cl.throttle cl.tokenbucket rl.throttle")
	if got := New().Batched(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCalled(t *testing.T) {
	table := New()
	for call, want := range map[string]string{
		"PING": "ping", "ping x": "ping", "CL.Bucket Take k 5": "cl.bucket|take", "cl.bucket": "cl.bucket", "cl.bucket nosuch": "",
		"nosuch": "", "nosuch take": "", "cl.bucket|take k": "",
	} {
		args := split(call)
		got := ""
		if c := table.Called(args); c != nil {
			got = c.FullName()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}

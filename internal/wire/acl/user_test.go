package acl

import (
	"bytes"
	"testing"
)

// TestCheck: each row was verified with ACL DRYRUN of redis-server 7.0.15.
func TestCheck(t *testing.T) {
	users := loaded(t, "user u off ~a* %R~r* %W~w* +get +set +config|get +select|0 +mget +ttl +del (~z* +set)")
	u := users.Lookup("u")
	read := func(names ...string) (keys []Key) {
		for _, name := range names {
			keys = append(keys, Key{[]byte(name), Read})
		}
		return keys
	}
	with := func(name string, access Access) []Key { return []Key{{[]byte(name), access}} }
	for _, c := range []struct {
		command, firstArg string
		keys              []Key
		want              Reason
		denied            int
	}{
		{"get", "a", read("a"), Allowed, 0},
		{"get", "b", read("b"), DeniedKey, 0},
		{"get", "w", read("w"), DeniedKey, 0},
		{"get", "r", read("r"), Allowed, 0},
		{"get", "z", read("z"), DeniedKey, 0},
		{"set", "a", with("a", Write), Allowed, 0},
		{"set", "r", with("r", Write), DeniedKey, 0},
		{"set", "w", with("w", Write), Allowed, 0},
		{"set", "w", with("w", Read|Write), DeniedKey, 0},
		{"set", "z", with("z", Write), Allowed, 0},
		{"del", "r", with("r", Write), DeniedKey, 0},
		{"ttl", "w", with("w", 0), Allowed, 0},
		{"ttl", "b", with("b", 0), DeniedKey, 0},
		{"mget", "a", read("a", "b", "c"), DeniedKey, 1},
		{"mget", "a", read("a", "z"), DeniedKey, 1},
		{"config|get", "x", nil, Allowed, 0},
		{"config|set", "x", nil, DeniedCommand, 0},
		{"select", "0", nil, Allowed, 0},
		{"select", "1", nil, DeniedCommand, 0},
		{"auth", "x", nil, Allowed, 0},
		{"cl.throttle", "a", with("a", Read|Write), DeniedCommand, 0},
	} {
		reason, denied := u.Check(command(t, c.command), []byte(c.firstArg), c.keys)
		if reason != c.want || denied != c.denied {
			t.Errorf("%s %v: %s %d, want %s %d", c.command, c.keys, reason, denied, c.want, c.denied)
		}
	}
	if mayRun(u, command(t, "select"), nil) {
		t.Error("a command allowed with an argument runs without")
	}
}

func TestUnrestricted(t *testing.T) {
	for rules, want := range map[string]bool{
		"on ~* +@all":                      true,
		"on +@all (~* +@all)":              true,
		"on ~* +@all -auth":                true, // everyone may run it
		"off ~* +@all":                     false,
		"on ~* +@all -get":                 false,
		"on ~* +@all -config|get":          false,
		"on %R~* +@all":                    false,
		"on ~** +@all":                     false,
		"on ~* +get (+@all)":               false,
		"on ~* +@fast +@slow +cl.throttle": true,
	} {
		if got := loaded(t, "user x "+rules).Lookup("x").Unrestricted(); got != want {
			t.Errorf("%s: %t", rules, got)
		}
	}
}

// TestBitsetsTakeABitEach: each user has some.
func TestBitsetsTakeABitEach(t *testing.T) {
	for commands, words := range map[int]int{0: 0, 1: 1, 63: 1, 64: 1, 65: 2, 128: 2, 129: 3} {
		if got := len(newCatalog(make([]Command, commands)).newBitset()); got != words {
			t.Errorf("%d commands take %d words, want %d", commands, got, words)
		}
	}
}

func TestChecksAllocateNothing(t *testing.T) {
	u := loaded(t, "user u on %W~y:* ~user:*:[a-z]? +get +select|0 (~x +cl.throttle)").Lookup("u")
	get, sel := command(t, "get"), command(t, "select")
	key, zero := []byte("user:1:xy"), []byte("0")
	keys := []Key{{key, Read}, {key, Write}}
	n := testing.AllocsPerRun(100, func() {
		if u.Unrestricted() || !mayRun(u, get, nil) || !mayRun(u, sel, zero) {
			t.Error("wrong")
		}
		if reason, _ := u.Check(get, key, keys); reason != Allowed {
			t.Error(reason)
		}
	})
	if n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkUser(b *testing.B) {
	u := loaded(b, "user u on ~user:* +get").Lookup("u")
	get, key := command(b, "get"), []byte("user:1")
	keys := []Key{{key, Read}}
	b.Run("Unrestricted", func(b *testing.B) {
		for b.Loop() {
			u.Unrestricted()
		}
	})
	b.Run("Check", func(b *testing.B) {
		for b.Loop() {
			u.Check(get, key, keys)
		}
	})
}

// TestCheckOfChannels: one selector has to allow the command and every channel. Each row was verified with
// ACL DRYRUN of redis-server 7.0.15, with PUBLISH or SUBSCRIBE instead of GET.
func TestCheckOfChannels(t *testing.T) {
	for _, tt := range []struct {
		rules, channels string
		want            Reason
		denied          int
	}{
		{"+@all", "a", DeniedChannel, 0},
		{"&* +@all", "a b", Allowed, 0},
		{"&a +get", "a", Allowed, 0},
		{"&a +get", "a b", DeniedChannel, 1},
		{"&a* &b +get", "ab b aa", Allowed, 0},
		{"&* -@all", "a", DeniedCommand, 0},
		{"+get (&a)", "a", DeniedChannel, 0},
		{"&a (&* +get)", "a b", Allowed, 0},
		{"+get (&a +get)", "a b", DeniedChannel, 1},
	} {
		u := loaded(t, "user u on nopass "+tt.rules).Lookup("u")
		var channels []Key
		for name := range bytes.FieldsSeq([]byte(tt.channels)) {
			channels = append(channels, Key{name, Channel})
		}
		if reason, denied := u.Check(command(t, "get"), nil, channels); reason != tt.want || denied != tt.denied {
			t.Errorf("%s: %s: %s %d, want %s %d", tt.rules, tt.channels, reason, denied, tt.want, tt.denied)
		}
	}
}

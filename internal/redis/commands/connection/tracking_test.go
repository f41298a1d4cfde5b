package connection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestTrackingPrefixes: their number and length are bounded, and they must not overlap.
func TestTrackingPrefixes(t *testing.T) {
	const ok, syntax = "+OK\r\n", "-ERR syntax error\r\n"
	const tooMany = "-ERR more than 128 prefixes, or longer than 1024 bytes together\r\n"
	overlap := func(a, with, b string) string {
		return "-ERR Prefix '" + a + "' overlaps with " + with + " prefix '" + b + "'. Prefixes for a single client must not overlap.\r\n"
	}
	numbered := func(n int) (args []string) {
		for i := range n {
			args = append(args, "PREFIX", fmt.Sprintf("%03d", i))
		}
		return args
	}
	sized := func(n int) []string { return []string{"PREFIX", "a", "PREFIX", strings.Repeat("b", n-1)} }
	for _, tt := range []struct {
		name string
		args []string // after BCAST
		want string
	}{
		{"as many as may be", numbered(128), ok},
		{"one more", numbered(129), tooMany},
		{"too many to compare them", slices.Repeat([]string{"PREFIX", "x"}, 129), tooMany},
		{"as long as may be", sized(1024), ok},
		{"one byte more", sized(1025), tooMany},
		{"another", []string{"PREFIX", "a", "PREFIX", "x", "PREFIX", "y", "PREFIX", "ab"}, overlap("a", "another provided", "ab")},
		{"the one behind it", []string{"PREFIX", "x", "PREFIX", "ab", "PREFIX", "a"}, overlap("ab", "another provided", "a")},
		{"the same", []string{"PREFIX", "x", "PREFIX", "x"}, overlap("x", "another provided", "x")},
		{"of before", []string{"PREFIX", "p:1"}, overlap("p:1", "an existing", "p:")},
		{"no prefix", []string{"PREFIX"}, syntax},
		{"no ID", []string{"REDIRECT"}, syntax},
		{"an ID", []string{"REDIRECT", "0"}, "-ERR CLIENT TRACKING REDIRECT is not supported: nothing is cached here, so no client is told of changes\r\n"},
		{"a prefix of that name", []string{"PREFIX", "redirect"}, ok},
	} {
		s := commandstest.New().Session()
		if tt.name == "of before" {
			commandstest.Say(t, s, "CLIENT TRACKING ON BCAST PREFIX p:\r\n")
		}
		if got := commandstest.Say(t, s, resptest.Encode(append([]string{"CLIENT", "TRACKING", "ON", "BCAST"}, tt.args...)...)); got != tt.want {
			t.Errorf("%s: got %.150q, want %q", tt.name, got, tt.want)
		}
	}
}

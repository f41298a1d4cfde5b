package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	t.Parallel()
	words := []string{"cl.check", "cl.mcheck", "cl.limit", "cl.throttle", "rl.throttle", "name", "period", strings.Repeat("long", 17)}
	for wrong, want := range map[string]string{
		"cl.throttel": "cl.throttle", "cl.trottle": "cl.throttle", "l.throttle": "cl.throttle", "cl.throtttle": "cl.throttle",
		"cl.chekc": "cl.check", "cl.mchek": "cl.mcheck", "cl.limits": "cl.limit", "nmae": "name", "nome": "name", "noms": "", "n": "",
		"peroid": "period", "perod": "period", "peri": "", "": "", "hset": "", "cl.throttle": "cl.throttle",
		strings.Repeat("long", 16) + "lon": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := Word(wrong, words); got != want {
			t.Errorf("%.40q: got %q, want %q", wrong, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	names := []string{"warn", "info", "maxclients", "addr"}
	for text, want := range map[string]string{"wran": "warn", "inf": "info", "max-clients": "maxclients", "zzz": "", "": "", "a": "", "adr": "addr"} {
		if got := Word(text, names); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestEdits of two words are those of the other way round.
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"abc", "ca", 3}, {"abcd", "acbd", 1}, {"abcd", "bacx", 2}, {"abcd", "wxyz", 4},
		{"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "cba", 2}, {"from", "form", 1}} {
		if got, back := edits(tt.a, tt.b, 9), edits(tt.b, tt.a, 9); got != tt.want || back != tt.want {
			t.Errorf("%q, %q: %d and %d edits, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}

package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	t.Parallel()
	words := []string{"cl.check", "cl.mcheck", "cl.limit", "cl.throttle", "rl.throttle", "name", "period", strings.Repeat("long", 9)}
	for wrong, want := range map[string]string{
		"cl.throttel": "cl.throttle", "cl.trottle": "cl.throttle", "l.throttle": "cl.throttle", "cl.throtttle": "cl.throttle",
		"cl.chekc": "cl.check", "cl.mchek": "cl.mcheck", "cl.limits": "cl.limit", "nmae": "name", "nome": "name", "noms": "", "n": "",
		"peroid": "period", "perod": "period", "peri": "", "": "", "hset": "", "cl.throttle": "cl.throttle",
		strings.Repeat("long", 8) + "lon": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := Word(wrong, words); got != want {
			t.Errorf("%.40q: got %q, want %q", wrong, got, want)
		}
	}
}

// TestEdits of two words are those of the other way round.
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"abc", "ca", 3}, {"abcd", "acbd", 1}, {"abcd", "bacx", 2}, {"abcd", "wxyz", 3}} {
		if got, back := edits(tt.a, tt.b), edits(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("%q, %q: %d and %d edits, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}

package table

import (
	"strings"
	"testing"
)

func TestSnippet(t *testing.T) {
	for _, test := range []struct{ name, source, want, err string }{
		{"one", "a\n\t// sentinel: begin\n\tb {\n\t\tc\n\t}\n\t// sentinel: end\nd\n", "b {\n\tc\n}\n", ""},
		{"two", "# sentinel: begin\na\n# sentinel: end\nb\n  # sentinel: begin\n  c\n  # sentinel: end\n", "a\n\nc\n", ""},
		{"none", "a\n", "", "no snippet"},
		{"no end", "// sentinel: begin\na\n", "", "no snippet"},
		{"no beginning", "a\n// sentinel: end\n", "", "ends before it begins"},
		{"nested", "// sentinel: begin\n// sentinel: begin\n", "", "begins inside another"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Snippet(test.source)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}

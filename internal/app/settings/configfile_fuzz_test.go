package settings

import (
	"strings"
	"testing"
)

// FuzzConfig requires each mistake in any file to be one line with its place, and every readable line to be
// set or refused.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		Example(), "maxclients: 5\nmaxclients: 6\n", "metrics-allowed-hosts: [a, b]\n", "a: &x [*x]\n", "timeout: !!float 5\n", "? [a]\n: b\n", "addr: |\n  a\n  b\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig("file", text)
		wrong := SplitProblems(err)
		if err == nil {
			wrong = nil
		}
		o := &Options{}
		wrong = append(wrong, c.set(o.FlagSet(o.FlagGroups()), Origins{})...)
		for _, mistake := range wrong {
			if line := mistake.Error(); strings.ContainsAny(line, "\n\r") || !strings.HasPrefix(line, "file:") {
				t.Errorf("%q", line)
			}
		}
	})
}

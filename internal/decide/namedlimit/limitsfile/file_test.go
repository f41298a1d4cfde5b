package limitsfile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/base/smallfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

func TestParseFile(t *testing.T) {
	t.Parallel()
	const text = `# what the shop allows
limits:
  login:
    windows:
      - {max_burst: 4, count: 5, period: 1m}
      - max_burst: 99
        count: 100
        period: 86400
  api.v2: {windows: [{capacity: 20, count: 10, period: 1s}], shadow: true}
  7_a-B:
    windows: &hourly [{max_burst: 0, count: 1, period: 1h}]
    shadow: false
  same: {windows: *hourly}
`
	for reading, more := range map[funnel.Reading]int64{funnel.Burst: 1, funnel.Capacity: 0} {
		text := text
		if reading == funnel.Capacity {
			text = strings.ReplaceAll(text, "max_burst: 0", "max_burst: 1")
		}
		got, err := parseFile("f", []byte(text), reading)
		hourly := []namedlimit.Window{window(1, 1, 3600)}
		want := map[string]namedlimit.Definition{
			"login":  {Name: "login", Windows: []namedlimit.Window{window(4+more, 5, 60), window(99+more, 100, 86400)}},
			"api.v2": {Name: "api.v2", Windows: []namedlimit.Window{window(20, 10, 1)}, Shadow: true},
			"7_a-B":  {Name: "7_a-B", Windows: hourly},
			"same":   {Name: "same", Windows: hourly},
		}
		if err != nil || !maps.EqualFunc(got, want, func(a, b namedlimit.Definition) bool { return a.Equal(&b) }) {
			t.Errorf("reading %d: got %+v, %v, want %+v", reading, got, err, want)
		}
	}
	if got, err := parseFile("f", []byte("limits: {}\n"), funnel.Burst); err != nil || len(got) != 0 {
		t.Errorf("no limits: got %v, %v", got, err)
	}
}

// TestParseFileErrors: errors have the line and the remedy.
func TestParseFileErrors(t *testing.T) {
	t.Parallel()
	const window = "{max_burst: 4, count: 5, period: 60}"
	for _, tt := range []struct{ text, want string }{
		{"", "f:1: nothing is here; write 'limits: {}' if there are to be none"},
		{"# only words\n", "f:1: nothing is here; write 'limits: {}' if there are to be none"},
		{"limits: {}\n---\nlimits: {}\n", "f:2: there must be one document; remove what is from this '---' on"},
		{"limits:\n\tlogin:\n", "f:2: not YAML: found character that cannot start any token"},
		{"limits: [\n", "f:2: not YAML: did not find expected node content"},
		{"hello\n", "f:1: the file must be a mapping"},
		{"other: 1\n", `f:1: unknown field "other"; there are limits`},
		{"{}\n", "f:1: limits is missing"},
		{"limits:\n", "f:1: limits must be a mapping"},
		{"limits:\n- a\n", "f:2: limits must be a mapping"},
		{"limits:\n  a b: {}\n", `f:2: "a b": a limit's name must be 1 to 64 letters, digits, dots, hyphens and underscores`},
		{"limits:\n  [a]: {}\n", "f:2: a key must be a word"},
		{"limits:\n  a: 1\n", "f:2: the limit a must be a mapping"},
		{"limits:\n  a: {}\n", "f:2: windows is missing"},
		{"limits:\n  a:\n    windows: " + window + "\n", "f:3: windows must be a list"},
		{"limits:\n  a:\n    windows: []\n", "f:2: a: a limit must have 1 to 16 windows, got 0"},
		{"limits:\n  a:\n    windows: [" + strings.Repeat(window+",", 17) + "]\n", "f:3: a limit must have 1 to 16 windows, got 17"},
		{"limits:\n  a:\n    windows: [" + window + ", " + window + "]\n", "f:2: a: two windows have the period 60; a window's state is known by its period, so give each another one"},
		{"limits:\n  a:\n    window: []\n", `f:3: unknown field "window"; there are windows and shadow`},
		{"limits:\n  a:\n    windows:\n    - 5\n", "f:4: a window must be a mapping"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5, period: 60, burst: 1}\n", `f:4: unknown field "burst"; there are max_burst or capacity, count and period`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5}\n", "f:4: a window must have max_burst or capacity, count and period"},
		{"limits:\n  a:\n    windows:\n    - {count: 5, period: 60}\n", "f:4: a window must have max_burst or capacity, count and period"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, capacity: 5, count: 5, period: 60}\n", "f:4: a window has max_burst or capacity, not both"},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4.5\n      count: 5\n      period: 60\n", `f:4: max_burst must be a decimal number, got "4.5"`},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4\n      count: [5]\n      period: 60\n", `f:5: count must be a decimal number, got ""`},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4\n      count: 5\n      period: 1.5s\n", `f:6: period must be whole seconds, such as 60, 60s, 1m or 24h, got "1.5s"`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5, period: a day}\n", `f:4: period must be whole seconds, such as 60, 60s, 1m or 24h, got "a day"`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: -1, count: 5, period: 60}\n", "f:4: max_burst must be at least 0, got -1"},
		{"limits:\n  a:\n    windows:\n    - {capacity: 0, count: 5, period: 60}\n", "f:4: capacity must be at least 1, got 0"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 1, count: 0, period: 60}\n", "f:4: Zero rates are not supported"},
		{"limits:\n  a:\n    windows: [" + window + "]\n    shadow: yes\n", `f:4: shadow must be true or false, got "yes"`},
		{"limits:\n  a: {windows: [" + window + "]}\n  a: {windows: [" + window + "]}\n", `f:3: "a" is in line 2 already`},
		{"limits:\n  a: {windows: [{<<: " + window + "}]}\n", `f:2: unknown field "<<"; there are max_burst or capacity, count and period`},
		{
			"limits:\n  a: {shadow: 1}\n  b: 2\n  c: {windows: [" + window + "]}\n",
			`f:2: shadow must be true or false, got "1"; f:3: the limit b must be a mapping`,
		},
	} {
		if _, err := parseFile("f", []byte(tt.text), funnel.Burst); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

func manyLimits(n int) string {
	var b strings.Builder
	b.WriteString("limits:\n")
	for i := range n {
		b.WriteString("  l" + strconv.Itoa(i) + ": {windows: [{max_burst: 4, count: 5, period: 60}]}\n")
	}
	return b.String()
}

func TestParseFileBounds(t *testing.T) {
	t.Parallel()
	if got, err := parseFile("f", []byte(manyLimits(namedlimit.MaxNames)), funnel.Burst); err != nil || len(got) != namedlimit.MaxNames {
		t.Errorf("the most limits: got %d, %v", len(got), err)
	}
	if _, err := parseFile("f", []byte(manyLimits(namedlimit.MaxNames+1)), funnel.Burst); err == nil || err.Error() != "f:1: 1025 limits; 1024 is the most" {
		t.Errorf("too many limits: %v", err)
	}
	_, err := parseFile("f", []byte("limits:\n"+strings.Repeat("  'a b': 1\n", 20)), funnel.Burst)
	if err == nil || !strings.HasSuffix(err.Error(), "; and 12 more errors") || strings.Contains(err.Error(), "\n") {
		t.Errorf("many errors: %v", err)
	}
	path := filepath.Join(t.TempDir(), "limits.yml")
	file := operatorsFile{path, funnel.Burst}
	if _, _, err := file.Read(); err == nil || err.Error() != "cannot read "+path+": no such file or directory" {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, make([]byte, smallfile.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := file.Read(); err == nil || err.Error() != "cannot read "+path+": it is longer than 4 MiB" {
		t.Errorf("a long file: %v", err)
	}
}

// TestAliasesOfProblemsAreBounded: an error repeated by aliases takes no more memory than its report.
func TestAliasesOfProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("limits:\n  a0: &a\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "    f%d: 1\n", i)
	}
	for i := range 2000 {
		fmt.Fprintf(&b, "  b%d: *a\n", i)
	}
	_, err := parseFile("f", []byte(b.String()), funnel.Burst)
	if err == nil || !strings.HasSuffix(err.Error(), "; and many more errors") || len(err.Error()) > 1000 {
		t.Errorf("got %.2000v", err)
	}
}

// FuzzParseFile: any text is read, within bounds, or refused with a line.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte("limits:\n  a:\n    windows: &w\n    - {max_burst: 4, count: 5, period: 1m}\n    shadow: true\n  b: {windows: *w}\n"))
	f.Add([]byte("limits: &a\n  b: *a\n"))
	f.Add([]byte("limits: {a: {windows: [{capacity: 1, count: 1, period: 1}]}}\n---\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("%YAML 1.2\n---\n!!map {limits: !!set {a}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseFile("f", text, funnel.Burst)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		var all []namedlimit.Definition
		for _, name := range slices.Sorted(maps.Keys(got)) {
			d := got[name]
			if err := d.Check(); err != nil || d.Name != name {
				t.Errorf("%q: %+v: %v", name, d, err)
			}
			all = append(all, d)
		}
		kept, err := parseKept(keptText(all))
		if err != nil || !slices.EqualFunc(kept, all, func(a, b namedlimit.Definition) bool { return a.Equal(&b) }) {
			t.Errorf("kept as %+v, %v; want %+v", kept, err, all)
		}
	})
}

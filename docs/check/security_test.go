package check

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"cellserver/internal/app/settings"
)

// TestSecurityDocument: each bound in SECURITY.md has its option's default and an existing test, and every
// option that bounds clients is listed.
func TestSecurityDocument(t *testing.T) {
	_, table, found := strings.Cut(read(t, "SECURITY.md"), "| bound | set by | default | test |\n| --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("SECURITY.md has no table of bounds")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	flags := map[string]*pflag.Flag{}
	var mustBeThere []string
	for _, g := range (&settings.Options{}).FlagGroups() {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			flags[f.Name] = f
			if g.Title == "Client limits" && f.Name != "shutdown-timeout" {
				mustBeThere = append(mustBeThere, f.Name)
			}
		})
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 4 {
			t.Errorf("not four cells: %s", row)
			continue
		}
		if option, ok := strings.CutPrefix(strings.Trim(cells[1], "`"), "--"); !ok {
			if cells[1] != "fixed" {
				t.Errorf("set by neither an option nor fixed: %s", row)
			}
		} else if f := flags[option]; f == nil || cells[2] != defaultOf(f) {
			t.Errorf("not the default of an option: %s", row)
		}
		names := strings.Split(cells[3], ", ")
		for _, name := range names {
			if !testExists(t, strings.Trim(name, "`")) {
				t.Errorf("no test %s, of the bound %q", name, cells[0])
			}
		}
	}
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		if !strings.Contains(read(t, file), "(SECURITY.md)") {
			t.Errorf("%s has no link to it", file)
		}
	}
	for _, name := range mustBeThere {
		if !strings.Contains(table, "| `--"+name+"` |") {
			t.Errorf("--%s is missing", name)
		}
	}
}

// TestDoorsDocument: each door of SECURITY.md has existing tests.
func TestDoorsDocument(t *testing.T) {
	_, table, found := strings.Cut(read(t, "SECURITY.md"), "| door | holds | decodes or computes | test |\n| --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("SECURITY.md has no table of doors")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 4 {
			t.Errorf("not four cells: %s", row)
			continue
		}
		for name := range strings.SplitSeq(cells[3], ", ") {
			if !testExists(t, strings.Trim(name, "`")) {
				t.Errorf("no test %s, of the door %q", name, cells[0])
			}
		}
	}
	for _, door := range []string{"TLS handshakes", "SETTINGS", "PING", "CONTINUATION", "/metrics", "the live page"} {
		if !strings.Contains(table, door) {
			t.Errorf("no door has %s", door)
		}
	}
}

func defaultOf(f *pflag.Flag) string {
	if f.DefValue == "" {
		return "none"
	}
	return "`" + f.DefValue + "`"
}

func testExists(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path.Dir(name), strings.TrimSuffix(path.Base(name), path.Ext(name)), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(strings.TrimPrefix(path.Ext(name), ".")) + `\(t \*testing\.T\)`)
	for _, file := range files {
		if declared.MatchString(read(t, file)) {
			return true
		}
	}
	return false
}

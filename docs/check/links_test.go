package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	inline  = regexp.MustCompile("`[^`\n]*`")
)

// TestLinks: linked files and sections exist.
func TestLinks(t *testing.T) {
	documents := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (name == "node_modules" || name == "testdata" || name == "dist" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		documents++
		for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(anyBlock.ReplaceAllString(read(t, path), ""), ""), -1) {
			if target := m[1] + m[2]; !strings.Contains(target, ":") {
				checkLink(t, path, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents < 15 {
		t.Errorf("only %d documents", documents)
	}
}

func checkLink(t *testing.T, document, target string) {
	t.Helper()
	file, section, _ := strings.Cut(target, "#")
	place := document
	if file != "" {
		place = filepath.Join(filepath.Dir(document), file)
	}
	if _, err := os.Stat(place); err != nil {
		t.Errorf("%s links to %s: %v", document, target, err)
		return
	}
	if section == "" {
		return
	}
	for _, m := range heading.FindAllStringSubmatch(anyBlock.ReplaceAllString(read(t, place), ""), -1) {
		if anchor(m[1]) == section {
			return
		}
	}
	t.Errorf("%s links to %s: there is no such section", document, target)
}

// anchor returns a section's link name: lower case, without punctuation, dashes for spaces.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

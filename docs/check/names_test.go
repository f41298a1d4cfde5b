package check

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/base/buildinfo"
)

// projectNames returns the names in lab/release/names.env, and the version.
func projectNames(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{"VERSION": buildinfo.Version}
	line := regexp.MustCompile(`(?m)^(\w+)=(\S+)$`)
	for _, m := range line.FindAllStringSubmatch(read(t, "lab/release/names.env"), -1) {
		names[m[1]] = m[2]
	}
	names["OWNER"] = path.Base(path.Dir(names["REPOSITORY"]))
	return names
}

// nameRule rewrites a pattern in files; upper-case words in braces are names.
type nameRule struct {
	files   *regexp.Regexp
	pattern *regexp.Regexp
	is      string
}

func nameRules(t *testing.T) (rules []nameRule) {
	t.Helper()
	const (
		before = "(?m)(^|[\\s\"'=(`])"
		own    = `(?:[\w.-]+/)*cellserver` // whatever it was called
	)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, regexp.QuoteMeta(e.Name()))
		}
	}
	inside := `(/(?:` + strings.Join(folders, "|") + `)\b)`
	for _, r := range []struct{ files, pattern, is string }{
		{`\.(go|md)$|(^|/)go\.mod$`, before + own + inside, "${1}{MODULE}${2}"},
		{`(^|/)go\.mod$`, `(?m)^(module |replace |require |\t)` + own + `( v0\.0\.0| =>|$)`, "${1}{MODULE}${2}"},
		{`^adapters/go/cellgrpc/go\.mod$`, `(/adapters/go )v\S+`, "${1}v{VERSION}"},
		{`\.(md|yml)$`, `https://github\.com/[\w-]+/cellserver\b`, "https://{REPOSITORY}"},
		{`^\.goreleaser\.yaml$`, `(?m)^(  - OWNER=).*$`, "${1}{OWNER}"},
		{`\.(md|ya?ml)$`, before + own + `:\d+\.\d+\.\d+\b`, "${1}{IMAGE}:{VERSION}"},
		{`^deploy/helm/cellserver/values\.yaml$`, `(?m)^(  repository: )\S*$`, "${1}{IMAGE}"},
		{`^deploy/helm/cellserver/README\.md$`, "(`image.repository` \\| `)[^`]*", "${1}{IMAGE}"},
		{`\.md$`, `oci://[\w./-]+/cellserver\b`, "{CHART}"},
		{`\.md$`, `\b(cellserver[_-])\d+\.\d+\.\d+`, "${1}{VERSION}"},
		{`(^|/)Chart\.yaml$`, `(?m)^((?:version|appVersion): ).*$`, "${1}{VERSION}"},
		{`(^|/)pyproject\.toml$`, `(?m)^(version = ").*(")$`, "${1}{VERSION}${2}"},
	} {
		rules = append(rules, nameRule{regexp.MustCompile(r.files), regexp.MustCompile(r.pattern), r.is})
	}
	return rules
}

// TestNames: names and versions are everywhere those of lab/release/names.env and of buildinfo. With
// UPDATE_NAMES set, it writes them.
func TestNames(t *testing.T) {
	names, rules, found := projectNames(t), nameRules(t), map[string]int{}
	for i := range rules {
		rules[i].is = regexp.MustCompile(`\{[A-Z]+\}`).ReplaceAllStringFunc(rules[i].is, func(name string) string {
			return names[strings.Trim(name, "{}")]
		})
	}
	walkText(t, func(file string) {
		was := read(t, file)
		is := was
		for _, r := range rules {
			if r.files.MatchString(file) {
				found[r.pattern.String()] += len(r.pattern.FindAllString(is, -1))
				is = r.pattern.ReplaceAllString(is, r.is)
			}
		}
		if is != was {
			rename(t, file, was, is)
		}
	})
	for _, r := range rules {
		if found[r.pattern.String()] == 0 && !strings.HasPrefix(r.is, "oci:") { // no document has it yet
			t.Errorf("nothing is like %s: remove the rule, or correct it", r.pattern)
		}
	}
}

// rename writes a file with other names, or says where it has wrong ones.
func rename(t *testing.T, file, was, is string) {
	t.Helper()
	if os.Getenv("UPDATE_NAMES") == "" {
		want := strings.Split(is, "\n")
		for i, line := range strings.Split(was, "\n") {
			if line != want[i] {
				t.Errorf("%s:%d: %q must be %q: UPDATE_NAMES=1 go test -run Names ./docs/check", file, i+1, line, want[i])
			}
		}
		return
	}
	if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
	if filepath.Base(file) == "go.mod" { // in the order of the names
		if out, err := exec.Command("go", "mod", "edit", "-fmt", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// walkText calls do for files with names of today, not of a former version.
func walkText(t *testing.T, do func(file string)) {
	t.Helper()
	skip := []string{".git", "node_modules", "dist", "testdata", "generated", "bin", "results"}
	kinds := []string{".go", ".mod", ".md", ".toml", ".yaml", ".yml"}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular() && slices.Contains(kinds, filepath.Ext(file)) && file != "CHANGELOG.md":
			do(filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestProfileIsOfThisModule: the compiler finds functions in the profile by their whole names.
func TestProfileIsOfThisModule(t *testing.T) {
	z, err := gzip.NewReader(strings.NewReader(read(t, "cmd/cellserver/default.pgo")))
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	// A string of the profile follows its length and a field's number.
	name := projectNames(t)["MODULE"] + "/internal/edge/server.(*loop)."
	if !bytes.Contains(profile, []byte(name)) {
		t.Errorf("the profile has no %s: make profile", name)
	}
}

package envoyconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAllFiles: a directory as envoyproxy/ratelimit reads it.
func TestAllFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name string) {
		t.Helper()
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		domain := strings.NewReplacer("/", "-", ".", "").Replace(name)
		if err := os.WriteFile(path, []byte("domain: "+domain+"\ndescriptors: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Skip("needs links:", err)
		}
	}
	for _, name := range []string{"v1/a", "v1/b.yaml", "v1/below/c.conf", "v1/.hidden", "v1/.below/d", "v1/..version/e", "elsewhere/f"} {
		write(name)
	}
	link("..version/e", "v1/e")
	link("..version", "v1/..data")
	link("../elsewhere", "v1/directory")
	link("nowhere", "v1/broken")
	link("v1", "current")
	for _, tt := range []struct {
		ignore bool
		want   []string
	}{
		{true, []string{"v1-a", "v1-b.yaml", "v1-below-c.conf", "v1-version-e"}},
		{false, []string{"v1-a", "v1-b.yaml", "v1-below-c.conf", "v1-below-d", "v1-hidden", "v1-version-e"}},
	} {
		s, err := Open(filepath.Join(root, "current"), Options{AllFiles: true, IgnoreDotFiles: tt.ignore})
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, d := range s.Rules().Domains {
			got = append(got, d.Name)
		}
		for _, name := range tt.want {
			want = append(want, strings.ReplaceAll(name, ".", ""))
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("without names that begin with a dot %v: %q, want %q", tt.ignore, got, want)
		}
	}
}

// TestDirectoryComesLater: a missing directory is an empty configuration, until it is there.
func TestDirectoryComesLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "current", "config")
	s, err := Open(dir, Options{AllFiles: true, MergeDomains: true})
	if err != nil || len(s.Rules().Domains) != 0 {
		t.Fatalf("a missing directory: %v", err)
	}
	if changed, err := s.ReloadChanged(); changed || err != nil {
		t.Errorf("nothing is there: %v, %v", changed, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		text := "domain: d\ndescriptors: [{key: " + name + ", rate_limit: {unit: day, requests_per_unit: 1}}]\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := s.ReloadChanged()
	if !changed || err != nil || s.Rules().Count() != 2 || len(s.Rules().Domains) != 1 {
		t.Errorf("two files with one domain: %v, %v, %d rules", changed, err, s.Rules().Count())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if changed, err := s.ReloadChanged(); !changed || err != nil || len(s.Rules().Domains) != 0 {
		t.Errorf("a directory that is gone: %v, %v", changed, err)
	}
}

package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestReproducible: the same source in another directory makes the same files, byte by byte.
func TestReproducible(t *testing.T) {
	t.Parallel()
	first := dist(t)
	second, err := release("second")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"cellserver_*", "cellserver-*", "cellserver_linux_*/cellserver", "checksums.txt"} {
		paths, err := filepath.Glob(filepath.Join(first, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			rel, err := filepath.Rel(first, path)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := readFile(t, path), readFile(t, filepath.Join(second, rel)); a != b {
				t.Errorf("%s differs: %d and %d bytes", rel, len(a), len(b))
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestArchive: the archive has the program with all that belongs to it.
func TestArchive(t *testing.T) {
	t.Parallel()
	archive := artifact(t, "cellserver_*_linux_amd64.tar.gz")
	top := strings.TrimSuffix(filepath.Base(archive), ".tar.gz") + "/"
	files := strings.Fields(must(t, "tar", "-tzf", archive))
	for _, want := range append(documents(t),
		"cellserver", "cellserver.yaml", "LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md",
		"completion/cellserver.bash", "completion/_cellserver", "completion/cellserver.fish", "man/cellserver.1",
	) {
		if !slices.Contains(files, top+want) {
			t.Errorf("no %s in %q", want, files)
		}
	}
	dir := t.TempDir()
	must(t, "tar", "-C", dir, "-xzf", archive)
	if got := must(t, filepath.Join(dir, top, "cellserver"), "--version"); !strings.HasPrefix(got, "cellserver ") {
		t.Errorf("--version prints %q", got)
	}
	if err := processtest.Command(t, "sh", "-c", `cd "$1" && sha256sum --check --quiet --ignore-missing checksums.txt`, "sh", dist(t)).Run(); err != nil {
		t.Errorf("checksums.txt: %v", err)
	}
}

// documents returns what errors and the documents themselves point to, by its path in the repository, in
// archives and, below /usr/share/doc/cellserver, in packages.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"docs/RECIPES.md"} // to which refusals point
	for _, pattern := range []string{"docs/*.md", "docs/design/*.md", "docs/limiters/*.svg"} {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s, %v", pattern, err)
		}
		for _, path := range paths {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
	}
	return all
}

// TestPackagesHaveDocuments: both packages have them where the unit and the errors say.
func TestPackagesHaveDocuments(t *testing.T) {
	t.Parallel()
	processtest.Need(t, "rpm")
	files := map[string]string{
		"deb": must(t, "dpkg-deb", "--contents", artifact(t, "cellserver_*_amd64.deb")) + "\n",
		"rpm": must(t, "rpm", "-qpl", artifact(t, "cellserver-*.x86_64.rpm")),
	}
	for name, list := range files {
		for _, want := range documents(t) {
			if !strings.Contains(list, "/usr/share/doc/cellserver/"+want+"\n") {
				t.Errorf("%s: no %s", name, want)
			}
		}
	}
	unit := readFile(t, "../../deploy/systemd/cellserver.service")
	if path := "file:///usr/share/doc/cellserver/docs/OPERATIONS.md\n"; !strings.Contains(unit, path) {
		t.Errorf("the unit does not lead to %s", path)
	}
}

// TestSBOM: the bill of materials lists what the binary says it is made of.
func TestSBOM(t *testing.T) {
	t.Parallel()
	info, err := buildinfo.ReadFile(artifact(t, "cellserver_linux_amd64_*/cellserver"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		Components []struct{ Name, Version string }
	}
	if err := readJSON(artifact(t, "cellserver_*_linux_amd64.cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+"@"+c.Version] = true
	}
	if want := len(info.Deps) + 1; len(listed) != want {
		t.Errorf("components: got %d, want %d, the modules and the standard library", len(listed), want)
	}
	for _, m := range info.Deps {
		if !listed[m.Path+"@"+m.Version] {
			t.Errorf("%s %s is missing", m.Path, m.Version)
		}
	}
	licenses := readFile(t, filepath.Join(filepath.Dir(dist(t)), thirdParty))
	for _, m := range info.Deps {
		if !strings.Contains(licenses, "\n"+m.Path+" "+m.Version+"\n") {
			t.Errorf("the license of %s is missing", m.Path)
		}
	}
}

// TestFormula: Ruby parses the formula, which names the archives by their checksums.
func TestFormula(t *testing.T) {
	t.Parallel()
	processtest.Need(t, "ruby")
	formula := artifact(t, "homebrew/Formula/cellserver.rb")
	if got := must(t, "ruby", "-wc", formula); got != "Syntax OK\n" {
		t.Errorf("ruby -wc: %s", got)
	}
	text := readFile(t, formula)
	for line := range strings.Lines(readFile(t, filepath.Join(dist(t), "checksums.txt"))) {
		if hash, name, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.HasSuffix(name, ".tar.gz") && !strings.Contains(text, hash) {
			t.Errorf("the formula does not have the checksum of %s", name)
		}
	}
}

// TestRPM installs and removes the package with a database of its own, on a Debian.
func TestRPM(t *testing.T) {
	t.Parallel()
	processtest.Need(t, "rpm")
	m := unpack(t)
	rpm := artifact(t, "cellserver-*.x86_64.rpm")
	if got := must(t, "rpm", "-qpl", rpm); !strings.Contains(got, "/usr/lib/systemd/system/cellserver.service\n") {
		t.Errorf("files: %s", got)
	}
	if got := must(t, "rpm", "-qpc", rpm); got != "/etc/cellserver/cellserver.yaml\n" {
		t.Errorf("configuration files: %q", got)
	}
	must(t, "rpm", "--root", m.root, "--initdb")
	must(t, "rpm", "--root", m.root, "--nodeps", "-i", rpm)
	must(t, "rpm", "--root", m.root, "--nodeps", "-V", "cellserver")
	if got := readFile(t, filepath.Join(m.root, "etc/passwd")); !strings.Contains(got, "\ncellserver:") {
		t.Errorf("no user: %s", got)
	}
	if got := must(t, "chroot", m.root, "cellserver", "--version"); !strings.HasPrefix(got, "cellserver ") {
		t.Errorf("--version prints %q", got)
	}
	must(t, "rpm", "--root", m.root, "--nodeps", "-e", "cellserver")
	for _, path := range []string{"usr/bin/cellserver", "usr/share/doc/cellserver", "etc/cellserver"} {
		if _, err := os.Stat(filepath.Join(m.root, path)); !os.IsNotExist(err) {
			t.Errorf("after its removal %s is there: %v", path, err)
		}
	}
}

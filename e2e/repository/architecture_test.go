// Package repository holds the source to ARCHITECTURE.md: which package imports what, and what is linked. It
// has tests alone.
package repository

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const root = "../.."

// floor is a folder and the lower packages that it must not import.
type floor struct {
	folder string
	not    []string // folders or packages
	free   string   // a package of it that may: it is for tests
}

// floors lists ARCHITECTURE.md's floors: a package imports only from its own folder and those below.
func floors() []floor {
	// Packages that move bytes or draw figures import no session and no command.
	noCommands := []string{"redis/session", "redis/execute", "redis/commands", "wire/catalog"}
	// Clients and operators learn of a store through the seam.
	return []floor{
		{folder: "e2e"},
		{folder: "docs/check"},
		{folder: "cmd"},
		{folder: "app"},
		{folder: "edge", not: append(noCommands, "migrate", "lua", "keep", "shard")},
		{folder: "migrate", not: []string{"redis/session", "redis/execute", "redis/commands", "lua"}},
		{folder: "redis", not: []string{"keep", "shard"}, free: "redis/commands/commandstest"},
		{folder: "decide", not: []string{"lua", "keep/remote", "shard"}},
		{folder: "lua", not: []string{"keep", "shard", "store", "limiter", "funnel", "wire", "base"}},
		{folder: "keep", not: []string{"wire"}},
		{folder: "shard", not: []string{"wire", "resp", "base"}},
		{folder: "store", not: []string{"wire", "base"}},
		{folder: "limiter", not: []string{"wire", "resp", "base"}},
		{folder: "funnel", not: []string{"wire", "resp", "base"}},
		{folder: "wire"},
		{folder: "resp", not: []string{"base"}},
		{folder: "base"},
		{folder: "docs"},
		{folder: "test"},
	}
}

func TestImportsGoDown(t *testing.T) {
	all := floors()
	position := func(path string) int {
		return slices.IndexFunc(all, func(f floor) bool { return within(path, f.folder) })
	}
	for _, p := range packages(t) {
		from := position(p.path)
		if from < 0 {
			t.Errorf("%s is on no floor: add its folder to the list here and to ARCHITECTURE.md", p.path)
			continue
		}
		for _, imported := range p.imports {
			if position(imported) < from {
				t.Errorf("%s imports %s, which is above it", p.path, imported)
			}
			for _, not := range all[from].not {
				if within(imported, not) && p.path != all[from].free {
					t.Errorf("%s imports %s, which its floor may not", p.path, imported)
				}
			}
		}
		for _, imported := range p.testImports {
			if position(imported) < from && (p.path != "store/storetest" || imported != "shard") {
				t.Errorf("a test of %s imports %s, which is above it", p.path, imported)
			}
		}
	}
}

// TestArgumentsReachNoDisk: reading arguments imports no storage.
func TestArgumentsReachNoDisk(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.path] = p.imports
	}
	seen := map[string]bool{}
	var visit func(path, by string)
	visit = func(path, by string) {
		if seen[path] {
			return
		}
		seen[path] = true
		if within(path, "keep") {
			t.Errorf("internal/redis/argument reaches internal/%s, which internal/%s imports", path, by)
		}
		for _, imported := range imports[path] {
			visit(imported, path)
		}
	}
	visit("redis/argument", "")
	if !seen["decide/namedlimit"] {
		t.Error("internal/redis/argument has moved: name it here as it is called now")
	}
}

// TestImportsOfOthers: a third-party package that trusts its peer, or its caller, has one importer.
func TestImportsOfOthers(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.others {
			if strings.HasPrefix(imported, "github.com/tidwall/redcon") && p.path != "resp" {
				t.Errorf("%s imports redcon; only resp may", p.path)
			}
			if strings.HasPrefix(imported, "github.com/yuin/gopher-lua") && !within(p.path, "lua") {
				t.Errorf("%s imports gopher-lua; only lua and what is below it may", p.path)
			}
			if imported == "C" {
				t.Errorf("%s imports %q", p.path, imported)
			}
		}
	}
}

// TestUnsafe: one file has a reason to import it.
func TestUnsafe(t *testing.T) {
	var found []string
	for _, folder := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), "\t\"unsafe\"\n") {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{filepath.Join(root, "internal/edge/server/socket_linux.go")}; !slices.Equal(found, want) {
		t.Errorf("%q import unsafe, only %q may", found, want)
	}
}

// goPackage is a package with its imports from the module, and others. Paths inside internal/ are relative to
// it.
type goPackage struct {
	path                         string
	imports, testImports, others []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	const format = `{{.ImportPath}}|{{join .Imports " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}`
	list := exec.Command("go", "list", "-f", format, "./cmd/...", "./docs/...", "./internal/...", "./e2e/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	module := moduleOf(t) + "/"
	own := func(path string) (from string, is bool) {
		if from, is = strings.CutPrefix(path, module); is {
			from = strings.TrimPrefix(from, "internal/")
		}
		return from, is
	}
	var all []goPackage
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		p := goPackage{}
		p.path, _ = own(fields[0])
		for _, imported := range strings.Fields(fields[1]) {
			if path, is := own(imported); is {
				p.imports = append(p.imports, path)
			} else {
				p.others = append(p.others, imported)
			}
		}
		for _, imported := range strings.Fields(fields[2]) {
			if path, is := own(imported); is {
				p.testImports = append(p.testImports, path)
			}
		}
		all = append(all, p)
	}
	return all
}

// moduleOf returns the module's path, which a release may change.
func moduleOf(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// within reports whether path is folder or below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// TestBinary: the program is static, without a plotting library and without unused methods. One call of a
// method by a computed name, as in text/template, makes the linker keep every exported method: 4 MB of
// go-redis alone. grpc-go has one in its traces, which the tag leaves out.
func TestBinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "cellserver")
	link := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-o", binary, "./cmd/cellserver")
	link.Dir, link.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	f, err := elf.Open(binary)
	if err != nil {
		t.Skip("not a system with ELF binaries:", err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker")
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	has := func(part string) bool {
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return strings.Contains(s.Name, part) })
	}
	if !has("go-redis/v9.(*Client)") {
		t.Error("go-redis has other names in the binary than this test looks for")
	}
	for _, part := range []string{"go-redis/v9.cmdable.GeoAdd", "text/template.(*state)", "gonum.org/"} {
		if has(part) {
			t.Errorf("the binary has %s", part)
		}
	}
}

// TestCommentsWrap: a comment's line takes at most 110 columns, with tabs of 4, unless it cannot be broken.
func TestCommentsWrap(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(string(source), "// Code generated ") {
			return err
		}
		n := 0
		for line := range strings.Lines(string(source)) {
			n++
			line = strings.TrimSuffix(strings.ReplaceAll(line, "\t", "    "), "\n")
			text, is := strings.CutPrefix(strings.TrimLeft(line, " "), "//")
			if got := utf8.RuneCountInString(line); is && got > 110 && strings.Contains(strings.TrimSpace(text), " ") {
				t.Errorf("%s:%d: a comment of %d columns, want at most 110", path, n, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

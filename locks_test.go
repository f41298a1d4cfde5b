package cellserver_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// lock is a mutex's declaration.
type lock struct {
	file       string
	begin, end int    // of its type in the file
	kind       string // Mutex or RWMutex
	line       int
	rank       string // "" for none
	inOrder    bool
}

var rankComment = regexp.MustCompile(`^// rank (\d+)(, in order)?: \S`)

// locks returns all mutexes of the program.
func locks(t *testing.T) (all []lock) {
	t.Helper()
	files := token.NewFileSet()
	declared := func(path string, typ ast.Expr, comment *ast.CommentGroup) {
		is, _ := typ.(*ast.SelectorExpr)
		if is == nil || fmt.Sprint(is.X) != "sync" || is.Sel.Name != "Mutex" && is.Sel.Name != "RWMutex" {
			return
		}
		at := files.Position(is.Pos())
		l := lock{file: path, begin: at.Offset, end: files.Position(is.End()).Offset, kind: is.Sel.Name, line: at.Line}
		if comment != nil {
			if m := rankComment.FindStringSubmatch(comment.List[0].Text); m != nil {
				l.rank, l.inOrder = m[1], m[2] != ""
			}
		}
		all = append(all, l)
	}
	for _, root := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (strings.HasSuffix(path, "test") || d.Name() == "testdata"): // helpers of tests
				return fs.SkipDir
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					declared(path, n.Type, n.Comment)
				case *ast.ValueSpec:
					declared(path, n.Type, n.Comment)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestLocksHaveRanks: a lock names its rank where it is declared, and ARCHITECTURE.md has a row for each.
func TestLocksHaveRanks(t *testing.T) {
	document, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## The order of locks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	used := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		used[row[1]] = false
	}
	for _, l := range locks(t) {
		if _, is := used[l.rank]; !is {
			t.Errorf("%s:%d: the comment must begin with a rank of ARCHITECTURE.md, as in %q", l.file, l.line, "// rank 90: guards all below")
		}
		used[l.rank] = true
	}
	for rank, is := range used {
		if !is {
			t.Errorf("ARCHITECTURE.md has rank %s, and no lock", rank)
		}
	}
}

// TestLocksAreTakenInOrder runs short tests with locks that panic when they are taken out of order.
func TestLocksAreTakenInOrder(t *testing.T) {
	if testing.Short() || runtime.GOARCH != "amd64" {
		t.Skip("builds everything again, for amd64")
	}
	args := []string{"test", "-short", "-vet=off", "-count=1", "-overlay", rankedSources(t, t.TempDir())}
	out, err := exec.Command("go", append(args, "./internal/redis/session", "./internal/edge/server",
		"./internal/shard", "./internal/keep/replication", "./internal/keep/persist")...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// rankedSources writes the program's sources with such locks, and returns the overlay for the go command.
func rankedSources(t *testing.T, dir string) (overlay string) {
	t.Helper()
	const own = "testdata/lockrank"
	replaced, n := map[string]string{}, 0
	write := func(path, text string) {
		n++
		to := filepath.Join(dir, fmt.Sprint(n, ".go"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[path] = to
	}
	byFile, types := map[string][]lock{}, map[string]string{}
	for _, l := range locks(t) {
		byFile[l.file] = append(byFile[l.file], l)
	}
	for path, in := range byFile {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		for _, l := range slices.Backward(in) {
			name := "Rank" + l.rank
			if l.inOrder {
				name += "InOrder"
			}
			types[name] = fmt.Sprintf("type %s struct{}\nfunc (%[1]s) rank() (int, bool) { return %s, %t }\n", name, l.rank, l.inOrder)
			text = text[:l.begin] + "lockrank." + l.kind + "[lockrank." + name + "]" + text[l.end:]
		}
		text = strings.Replace(text, "\nimport ", "\nimport \""+projectNames(t)["MODULE"]+"/"+own+"\"\nimport ", 1)
		write(path, text+"\nvar _ sync.Mutex\n")
	}
	write(own+"/ranks.go", "package lockrank\n"+strings.Join(slices.Collect(maps.Values(types)), ""))
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lock is a mutex's declaration.
type lock struct {
	file string
	line int
	rank string // "" for none
}

var rankComment = regexp.MustCompile(`^// rank (\d+)(?:, in order)?: \S`)

// locks returns all mutexes of the program.
func locks(t *testing.T) (all []lock) {
	t.Helper()
	files := token.NewFileSet()
	declared := func(path string, typ ast.Expr, comment *ast.CommentGroup) {
		is, _ := typ.(*ast.SelectorExpr)
		if is == nil || fmt.Sprint(is.X) != "sync" || is.Sel.Name != "Mutex" && is.Sel.Name != "RWMutex" {
			return
		}
		l := lock{file: path, line: files.Position(is.Pos()).Line}
		if comment != nil {
			if m := rankComment.FindStringSubmatch(comment.List[0].Text); m != nil {
				l.rank = m[1]
			}
		}
		all = append(all, l)
	}
	for _, folder := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
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
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
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

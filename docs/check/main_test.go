// Package check tries what the documents say on the program as it is built for users, from the repository's
// root. It has tests alone; they run one at a time.
package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var builtDir string // removed by TestMain

func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil { // documents are named from the root
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// buildOnce links the server, which takes seconds.
var buildOnce = sync.OnceValue(func() (err error) {
	if builtDir, err = os.MkdirTemp("", "cellserver"); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", builtDir, "./cmd/cellserver")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
})

// build returns the server in a directory of its own, where a test may write files beside it.
func build(t *testing.T) (binary string) {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(t.TempDir(), "cellserver")
	if err := os.Link(filepath.Join(builtDir, "cellserver"), binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

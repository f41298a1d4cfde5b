package cellserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the server for this package's tests. It is linked once, which takes seconds.
var built struct {
	once sync.Once
	dir  string // removed by TestMain
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// build returns the server in a directory of its own, where a test may write files beside it.
func build(t *testing.T) (binary string) {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "cellserver"); built.err != nil {
			return
		}
		cmd := exec.CommandContext(testContext(t), "go", "build", "-trimpath", "-o", built.dir, "./cmd/cellserver")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	binary = filepath.Join(t.TempDir(), "cellserver")
	if err := os.Link(filepath.Join(built.dir, "cellserver"), binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

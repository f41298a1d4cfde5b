// Package built builds cellserver once for the tests of a process. It is safe for concurrent use.
package built

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// server is the program, which takes seconds to link.
var server struct { //nolint:gochecknoglobals // one for all tests of a process
	once sync.Once
	dir  string // removed by Main
	err  error
}

// Main runs the tests, and removes what they have built.
func Main(m *testing.M) (code int) {
	code = m.Run()
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
	return code
}

// Server returns the path of the program.
func Server(t testing.TB) (path string) {
	t.Helper()
	server.once.Do(func() { server.dir, server.err = build(t.Context()) })
	if server.err != nil {
		t.Fatal(server.err)
	}
	return filepath.Join(server.dir, "cellserver")
}

func build(ctx context.Context) (dir string, err error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "cellserver").Output()
	if err != nil {
		return "", fmt.Errorf("built: find the source: %w", err)
	}
	if dir, err = os.MkdirTemp("", "cellserver"); err != nil {
		return "", fmt.Errorf("built: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-pgo=off", "-trimpath", "-o", dir, "./cmd/cellserver")
	build.Dir, build.Env = strings.TrimSpace(string(source)), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("built: %w\n%s", err, out)
	}
	return dir, nil
}

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Rewrite replaces a file, reloads the server, and waits for the log line.
func (p *Process) Rewrite(t *testing.T, path, text, logged string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Reload(t, logged)
}

// Reload reloads the server's files and waits for the log line.
func (p *Process) Reload(t *testing.T, logged string) {
	t.Helper()
	before := strings.Count(p.Log.String(), logged)
	p.Signal(t, syscall.SIGHUP)
	p.Eventually(t, "log "+logged, func() bool { return strings.Count(p.Log.String(), logged) > before })
}

// Get expects a value of CONFIG GET.
func (p *Process) Get(t *testing.T, name, want string) {
	t.Helper()
	Exchange(t, p.Dial(t), "CONFIG GET "+name+"\r\n", fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(want), want))
}

// WriteFile makes a file that only its owner may read.
func WriteFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

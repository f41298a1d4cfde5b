//go:build unix

package transfer

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/internal/test/patience"
)

// TestPipeIsNoDirectory: a pipe without a writer is refused unopened, as opening would block.
func TestPipeIsNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := OpenDir(path)
		opened <- err
	}()
	err, ended := patience.Receive(opened)
	if !ended || err == nil || !strings.Contains(err.Error(), "is a file, not a data directory") {
		t.Errorf("ended %t: %v", ended, err)
	}
}

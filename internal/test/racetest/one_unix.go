//go:build unix

package racetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// OneAtATime has only one of the tests that fill the machine run under the race detector, of all packages
// that are tested at once. It is called behind t.Parallel, and not in the tests that a test consists of as
// well.
func OneAtATime(t testing.TB) {
	t.Helper()
	if !Enabled {
		return
	}
	name := fmt.Sprintf("cellserver-racetest-%d.lock", os.Getuid())
	f, err := os.OpenFile(filepath.Join(os.TempDir(), name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // which unlocks it; children do not have it
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
}

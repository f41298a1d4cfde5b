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

// OneAtATime serializes tests that fill the machine, across all packages, under the race detector. Call it
// after t.Parallel and not in subtests.
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
	t.Cleanup(func() { _ = f.Close() }) // unlocks; children do not inherit it
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
}

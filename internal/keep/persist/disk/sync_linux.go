package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs a file's bytes and its length, and not its times: that saves a write to the file system's journal.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "sync", Path: f.Name(), Err: err}
		}
	}
}

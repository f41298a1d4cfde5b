package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until it is closed.
func tryLock(f *os.File) (inUse bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// tryLockDir locks nothing: the system lets nobody remove or rename the file that is locked in the directory.
func tryLockDir(*os.File) (inUse bool, err error) { return false, nil }

func syncOpenDir(*os.File) error { return nil }

// syncDir has nothing to do: the system keeps names by itself.
func syncDir(string) error { return nil }

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until its close.
func tryLock(f *os.File) (inUse bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// tryLockDir does nothing: the system protects the locked file in the directory.
func tryLockDir(*os.File) (inUse bool, err error) { return false, nil }

func syncOpenDir(*os.File) error { return nil }

// syncDir does nothing: the system keeps names by itself.
func syncDir(string) error { return nil }

//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file until its close.
func tryLock(f *os.File) (inUse bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err
}

// tryLockDir locks a directory, which some network file systems cannot.
func tryLockDir(f *os.File) (inUse bool, err error) { return tryLock(f) }

func syncOpenDir(f *os.File) error { return f.Sync() }

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

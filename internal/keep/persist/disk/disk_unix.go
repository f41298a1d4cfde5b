//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file until it is closed.
func tryLock(f *os.File) (inUse bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err
}

// tryLockDir is tryLock for a directory, which some file systems of the network do not lock.
func tryLockDir(f *os.File) (inUse bool, err error) { return tryLock(f) }

func syncOpenDir(f *os.File) error { return f.Sync() }

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

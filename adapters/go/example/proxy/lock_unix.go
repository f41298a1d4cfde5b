//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

var errInUse = errors.New("another process has it; give each proxy a file of its own")

// lock locks the file until its close: two proxies would both settle what is open.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

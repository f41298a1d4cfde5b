//go:build unix

package conn

import (
	"errors"
	"syscall"
)

// WriteOnce writes what a socket takes without blocking.
func WriteOnce(fd int, buf []byte) (n int, err error) {
	for {
		n, err = syscall.Write(fd, buf)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}

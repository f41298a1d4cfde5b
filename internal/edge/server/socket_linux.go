package server

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// readOnce receives what is available; again reports that nothing is yet.
func readOnce(fd int, buf []byte) (n int, again bool, err error) {
	return transfer(unix.SYS_RECVFROM, fd, buf, 0)
}

// writeOnce sends what a socket takes without blocking.
func writeOnce(fd int, buf []byte) (n int, err error) {
	n, _, err = transfer(unix.SYS_SENDTO, fd, buf, unix.MSG_NOSIGNAL)
	return n, err
}

// transfer calls a socket's own system calls, for which the kernel does less than for read and write. The
// scheduler is not told, as they never block. Both need unsafe.
func transfer(call uintptr, fd int, buf []byte, flags uintptr) (n int, again bool, err error) {
	for {
		r, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), flags, 0, 0)
		switch {
		case errno == 0:
			return int(r), false, nil
		case errno == unix.EAGAIN:
			return 0, true, nil
		case errno != unix.EINTR:
			return 0, false, errno
		}
	}
}

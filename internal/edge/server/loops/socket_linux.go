package loops

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// readOnce receives what is available; again reports that nothing is yet.
func readOnce(fd int, buf []byte) (n int, again bool, err error) {
	n, errno := transfer(unix.SYS_RECVFROM, fd, buf, 0)
	switch errno {
	case 0:
		return n, false, nil
	case unix.EAGAIN:
		return 0, true, nil
	}
	return 0, false, errno
}

// writeOnce sends what a socket takes without blocking.
func writeOnce(fd int, buf []byte) (n int, err error) {
	n, errno := transfer(unix.SYS_SENDTO, fd, buf, unix.MSG_NOSIGNAL)
	switch errno {
	case 0, unix.EAGAIN:
		return n, nil
	}
	return 0, errno
}

// transfer calls a socket's own system calls, for which the kernel does less than for read and write, and does
// not tell the scheduler: they never block. Both need unsafe.
func transfer(call uintptr, fd int, buf []byte, flags uintptr) (n int, errno unix.Errno) {
	for {
		r, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), flags, 0, 0)
		switch errno {
		case 0:
			return int(r), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

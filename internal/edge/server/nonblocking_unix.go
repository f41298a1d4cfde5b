//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"
)

// nonblocking writes what a connection takes without blocking.
type nonblocking struct {
	raw syscall.RawConn // nil without a descriptor: then nothing is written
	try *attempt
}

type attempt struct {
	buf []byte
	n   int
	err error
	do  func(fd uintptr) bool // made once, to avoid an allocation per write
}

func newNonblocking(nc net.Conn) nonblocking {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nonblocking{}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nonblocking{}
	}
	try := &attempt{}
	try.do = func(fd uintptr) bool {
		try.n, try.err = writeNow(int(fd), try.buf)
		return true
	}
	return nonblocking{raw: raw, try: try}
}

func (w nonblocking) write(b []byte) (n int, err error) {
	if w.raw == nil {
		return 0, nil
	}
	w.try.buf = b
	err = w.raw.Write(w.try.do)
	w.try.buf = nil
	if err != nil {
		return 0, err
	}
	return w.try.n, w.try.err
}

// writeNow writes what a socket takes without blocking.
func writeNow(fd int, buf []byte) (n int, err error) {
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

//go:build linux

package server

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShortReads checks that the rest of a short read is read without waiting for more input.
func TestShortReads(t *testing.T) {
	onEachServer(t, nil, func(t *testing.T, s *testServer) {
		for range 20 {
			switch nc := s.dial(t).(type) {
			case *net.TCPConn:
				sendUrgent(t, nc)
				expect(t, nc, "one\ntwo\n")
			case *net.UnixConn:
				if _, _, err := nc.WriteMsgUnix([]byte("one\n"), unix.UnixRights(int(os.Stdin.Fd())), nil); err != nil {
					t.Fatal(err)
				}
				write(t, nc, "two\n")
				expect(t, nc, "one\ntwo\n")
			}
		}
	})
}

// sendUrgent sends two lines at once, with a byte of urgent data between them.
func sendUrgent(t *testing.T, nc *net.TCPConn) {
	t.Helper()
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(own uintptr) {
		fd := int(own)
		for _, step := range []func() error{
			func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 1) },
			func() error { return unix.Sendto(fd, []byte("one\n"), 0, nil) },
			func() error { return unix.Sendto(fd, []byte("!"), unix.MSG_OOB, nil) },
			func() error { return unix.Sendto(fd, []byte("two\n"), 0, nil) },
			func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 0) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

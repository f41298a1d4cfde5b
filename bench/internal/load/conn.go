package load

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// conn is one connection, with its pending output and its expected replies.
type conn struct {
	fd      int
	index   int // among its worker's connections
	dialect dialect
	tail    []byte // the beginning of an incomplete line or frame

	batch  []byte // the encoded batch, valid until the next one
	unsent int    // bytes of batch that the system has not accepted yet
	owed   int    // batches that are due but not begun

	begun    int   // batches begun in this run
	awaited  int   // replies expected for batches begun
	answered int   // replies in this run
	sentNs   int64 // when the batch of the closed loop was begun
}

func dial(addr netip.AddrPort, command *Command, pipeline int) (*conn, error) {
	family := unix.AF_INET
	var sockaddr unix.Sockaddr
	if addr.Addr().Is4() {
		sockaddr = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	} else {
		family, sockaddr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("load: socket: %w", err)
	}
	c := &conn{fd: fd, dialect: command.newDialect(pipeline)}
	if err := c.connect(sockaddr); err != nil {
		c.close()
		return nil, fmt.Errorf("load: cannot connect to %s: %w; is a server there?", addr, err)
	}
	return c, nil
}

func (c *conn) connect(to unix.Sockaddr) error {
	err := unix.Connect(c.fd, to)
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EALREADY) { // interrupted: the next call returns the result
		err = unix.Connect(c.fd, to)
	}
	if err != nil && !errors.Is(err, unix.EISCONN) {
		return err
	}
	if err := unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	return unix.SetNonblock(c.fd, true)
}

// close resets the connection, so that runs with thousands of them do not use up the ports by TIME_WAIT.
func (c *conn) close() {
	_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
	_ = unix.Close(c.fd)
}

// flush writes as much of the batch as the system accepts. The edge-triggered poller reports when it accepts
// more.
func (c *conn) flush() error {
	for c.unsent > 0 {
		n, err := unix.Write(c.fd, c.batch[len(c.batch)-c.unsent:])
		switch {
		case err == nil:
			c.unsent -= n
		case errors.Is(err, unix.EAGAIN):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// receive counts the replies that have arrived. buf is shared by the thread's connections.
func (c *conn) receive(buf []byte) (n counted, err error) {
	for {
		kept := copy(buf, c.tail)
		got, err := unix.Read(c.fd, buf[kept:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return n, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return n, fmt.Errorf("read: %w", err)
		case got == 0:
			return n, fmt.Errorf("the server closed a connection: %w", io.ErrUnexpectedEOF)
		}
		m, used, err := c.dialect.feed(buf[:kept+got])
		n.replies += m.replies
		n.limited += m.limited
		if err != nil {
			return n, err
		}
		if kept+got-used == len(buf) {
			return n, fmt.Errorf("not a reply: a line or frame of more than %d bytes", len(buf))
		}
		c.tail = append(c.tail[:0], buf[used:kept+got]...)
		if kept+got < len(buf) { // nothing is left, and the poller reports when more arrives
			return n, nil
		}
	}
}

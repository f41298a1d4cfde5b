package load

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// conn is one connection: what it still has to send, and what it still waits for.
type conn struct {
	fd      int
	index   int // among its worker's connections
	replies replies
	tail    []byte // the beginning of a line whose rest has not come

	batch  []byte // a batch, into which each one's keys are written
	unsent int    // bytes of batch that the system has not taken
	owed   int    // batches that are due and not begun

	begun    int   // batches begun in this run
	awaited  int   // replies to batches begun
	answered int   // replies in this run
	sentNs   int64 // when the closed loop's batch was begun
}

func dial(addr netip.AddrPort, command Command, pipeline int) (*conn, error) {
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
	c := &conn{fd: fd, replies: replies{denied: command.denied}, batch: command.repeat(pipeline)}
	if err := c.connect(sockaddr); err != nil {
		c.close()
		return nil, fmt.Errorf("load: cannot connect to %s: %w; is a server there?", addr, err)
	}
	return c, nil
}

func (c *conn) connect(to unix.Sockaddr) error {
	err := unix.Connect(c.fd, to)
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EALREADY) { // interrupted: the next call says how it ended
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

// flush gives the system what it takes of the batch. The edge-triggered poller says when it takes more.
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

// receive counts the replies that are there. buf is the thread's, for all its connections.
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
		m, used, err := c.replies.feed(buf[:kept+got])
		n.replies += m.replies
		n.denied += m.denied
		if err != nil {
			return n, err
		}
		if kept+got-used == len(buf) {
			return n, fmt.Errorf("not a reply: a line of more than %d bytes", len(buf))
		}
		c.tail = append(c.tail[:0], buf[used:kept+got]...)
		if kept+got < len(buf) { // nothing is left, and the poller says when more comes
			return n, nil
		}
	}
}

package server

import (
	"bytes"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// handOver passes the connection to its door.
func (c *loopConn) handOver() {
	input, replies := bytes.Clone(c.in.unread()), c.unsent()
	c.endSession()
	nc, err := c.detach()
	if err != nil {
		c.loop.server.logUnserved(c.peer, err)
		c.loop.server.left(c.peer, c.openedNs, ReasonSystem, c.traffic)
		return
	}
	g := &Guest{Peer: c.peer, server: c.loop.server, openedNs: c.openedNs}
	g.received.Store(c.traffic.received)
	g.sent.Store(c.traffic.sent)
	c.door = &GuestServer{end: c.door.TakeOver(nc, g, input, replies)}
}

// unsent takes the replies that the client has not taken.
func (c *loopConn) unsent() (replies []byte) {
	for c.out.Len() > 0 {
		front := c.out.Front()
		replies = append(replies, front...)
		c.out.Take(&c.loop.server.pool, len(front))
	}
	return replies
}

// detach takes the connection from its loop.
func (c *loopConn) detach() (net.Conn, error) {
	// its duplicate would keep it registered
	err := c.loop.poll.control(unix.EPOLL_CTL_DEL, int(c.fd), 0)
	var nc net.Conn
	if err == nil {
		var own int
		if own, err = unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			file := os.NewFile(uintptr(own), "")
			nc, err = net.FileConn(file)
			_ = file.Close()
		}
	}
	c.loop.forget(c)
	return nc, err
}

func (c *loopConn) limits() *Limits {
	if c.door != nil {
		return &c.door.Limits
	}
	return c.loop.server.limits.Load()
}

// mayKeep returns how many bytes may stay half-sent for any time.
func (c *loopConn) mayKeep() int {
	if c.door != nil {
		return 0
	}
	return halfSentBytes
}

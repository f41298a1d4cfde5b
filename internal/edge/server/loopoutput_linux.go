package server

import (
	"golang.org/x/sys/unix"

	"cellserver/internal/wire/peer"
)

// send writes replies and queues what the client does not take. It returns false if the connection was
// closed.
func (c *loopConn) send(replies []byte) bool {
	if c.hangup == peer.Reset {
		return true
	}
	if len(replies) > 0 && c.out.Len() == 0 {
		n, err := writeOnce(int(c.fd), replies)
		if err != nil {
			c.on(onClose)
			return false
		}
		replies = replies[n:]
		c.wrote(n)
	}
	if len(replies) == 0 {
		return true
	}
	c.out.Add(&c.loop.server.pool, replies)
	switch c.limits().judgeOutput(c.out.Len(), c.session.Authenticated()) {
	case outputFits:
	case outputOverruns:
		c.closeFor(ReasonOutput)
		return false
	case outputBlocks:
		c.on(onBlocked)
	}
	return true
}

func (c *loopConn) wrote(n int) {
	c.traffic.sent += uint64(n)
	c.loop.traffic.sent += uint64(n)
}

// flush writes queued replies as far as the client takes them. It returns false if the client is gone or the
// connection was closed.
func (c *loopConn) flush() bool {
	for written := 0; c.out.Len() > 0 && written < loopOutputBytes; {
		front := c.out.Front()
		n, err := writeOnce(int(c.fd), front)
		if err != nil {
			c.lost()
			return false
		}
		c.out.Take(&c.loop.server.pool, n)
		c.wrote(n)
		if written += n; n < len(front) {
			break
		}
	}
	c.reportHeld()
	if c.out.Len() == 0 && c.phase.isFlushing() {
		c.flushed()
		return c.phase != phaseClosed
	}
	if c.phase.isBlocked() && c.out.Len() <= c.limits().resumeBytes() {
		c.halfSentNs = 0 // the client could not send meanwhile
		c.on(onResumed)
		c.queue()
	}
	c.listen()
	return true
}

// loopOutputBytes bounds how much is written to a connection in one turn.
const loopOutputBytes = 1 << 20

// endFor sends pending replies and closes the connection; no more commands are read.
func (c *loopConn) endFor(r Reason) {
	c.because(r)
	c.on(endEvent(r))
	c.in.release(&c.loop.server.pool)
	c.reportHeld()
	if c.out.Len() == 0 {
		c.flushed()
		return
	}
	c.listen()
}

// flushed continues endFor when all replies are sent.
func (c *loopConn) flushed() {
	if c.phase == phaseFinishing && unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil {
		c.on(onClose)
		return
	}
	if c.on(onFlushed); c.phase == phaseLingering {
		c.unreported = max(c.unreported, unreportedPerhaps) // earlier input may have been reported already
		c.queue()
		c.listen()
	}
}

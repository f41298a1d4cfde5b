package server

import (
	"golang.org/x/sys/unix"
)

// send writes replies and queues what the client does not take. It returns false if the connection was
// closed.
func (c *loopConn) send(replies []byte) bool {
	if c.reset {
		return true
	}
	if len(replies) > 0 && c.out.Len() == 0 {
		n, err := writeOnce(int(c.fd), replies)
		if err != nil {
			c.close()
			return false
		}
		replies = replies[n:]
		c.wrote(n)
	}
	if len(replies) == 0 {
		return true
	}
	c.out.Add(&c.loop.server.pool, replies)
	limits := c.loop.server.limits.Load()
	switch limits.judgeOutput(c.out.Len(), c.session.Authenticated()) {
	case outputFits:
	case outputOverruns:
		c.closeFor(ReasonOutput)
		return false
	case outputBlocks:
		if !c.blocked {
			c.blocked = true
			c.dueIn(limits.OutputTimeout)
		}
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
	if c.out.Len() == 0 && c.phase != phaseOpen {
		c.flushed()
		return c.phase != phaseClosed
	}
	if c.blocked && c.phase == phaseOpen && c.out.Len() <= c.loop.server.limits.Load().resumeBytes() {
		c.unblock()
	}
	c.listen()
	return true
}

// unblock resumes a client that has read enough of its replies.
func (c *loopConn) unblock() {
	c.blocked = false
	c.halfSentNs = 0 // it could not send meanwhile
	if c.waiting {
		c.setDue(0)
		return
	}
	c.awaitInput()
	c.more = true
	c.queue()
}

// loopOutputBytes bounds how much is written to a connection in one turn.
const loopOutputBytes = 1 << 20

// endFor sends pending replies and closes the connection; no more commands are read.
func (c *loopConn) endFor(r Reason) {
	c.because(r)
	c.phase, c.more = phaseFlushing, false
	if r.Lingers() {
		c.phase = phaseFinishing
	}
	c.in.release(&c.loop.server.pool)
	c.reportHeld()
	if c.out.Len() == 0 {
		c.flushed()
		return
	}
	c.dueIn(c.loop.server.limits.Load().OutputTimeout)
	c.listen()
}

// flushed continues endFor when all replies are sent.
func (c *loopConn) flushed() {
	if c.phase == phaseFlushing || unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil {
		c.close()
		return
	}
	c.phase = phaseLingering
	c.dueIn(lingerTimeout)
	c.readable = true // earlier input may have been reported already
	c.queue()
	c.listen()
}

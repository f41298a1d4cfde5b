package loops

import (
	"golang.org/x/sys/unix"

	"cellserver/internal/edge/server/conn"
)

// send writes replies and queues what the client does not take. It returns false if the connection was
// closed.
func (c *connection) send(replies []byte) bool {
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
	c.out.Add(&c.loop.host.Pool, replies)
	limits := c.loop.host.Limits()
	switch limits.JudgeOutput(c.out.Len(), c.session.Authenticated()) {
	case conn.OutputFits:
	case conn.OutputOverruns:
		c.closeFor(conn.ReasonOutput)
		return false
	case conn.OutputBlocks:
		if !c.blocked {
			c.blocked = true
			c.dueIn(limits.OutputTimeout)
		}
	}
	return true
}

func (c *connection) wrote(n int) {
	c.traffic.Sent += uint64(n)
	c.loop.traffic.Sent += uint64(n)
}

// flush writes queued replies as far as the client takes them. It returns false if the client is gone or the
// connection was closed.
func (c *connection) flush() bool {
	for written := 0; c.out.Len() > 0 && written < loopOutputBytes; {
		front := c.out.Front()
		n, err := writeOnce(int(c.fd), front)
		if err != nil {
			c.lost()
			return false
		}
		c.out.Take(&c.loop.host.Pool, n)
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
	if c.blocked && c.phase == phaseOpen && c.out.Len() <= c.loop.host.Limits().ResumeBytes() {
		c.unblock()
	}
	c.listen()
	return true
}

// unblock resumes a client that has read enough of its replies.
func (c *connection) unblock() {
	c.blocked = false
	c.HalfSentNs = 0 // it could not send meanwhile
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
func (c *connection) endFor(r conn.Reason) {
	c.Because(r)
	c.phase, c.more = phaseFlushing, false
	if r.Lingers() {
		c.phase = phaseFinishing
	}
	c.in.Release(&c.loop.host.Pool)
	c.reportHeld()
	if c.out.Len() == 0 {
		c.flushed()
		return
	}
	c.dueIn(c.loop.host.Limits().OutputTimeout)
	c.listen()
}

// flushed continues endFor when all replies are sent.
func (c *connection) flushed() {
	if c.phase == phaseFlushing || unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil {
		c.close()
		return
	}
	c.phase = phaseLingering
	c.dueIn(conn.LingerTimeout)
	c.readable = true // earlier input may have been reported already
	c.queue()
	c.listen()
}

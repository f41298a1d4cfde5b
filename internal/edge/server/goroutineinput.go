package server

import (
	"errors"
	"io"
	"os"
	"time"

	"cellserver/internal/wire/peer"
)

// read waits for input.
func (c *goroutineConn) read() {
	switch {
	case c.hangup != peer.Connected:
		c.endFor(ReasonClient)
		return
	case !c.prepareRead():
		c.endFor(ReasonShutdown)
		return
	case c.wasWoken():
		c.move(onWoken)
		return
	}
	free := c.freeInput()
	if free == nil {
		return
	}
	switch err := c.readInto(free); {
	case err == nil:
		c.move(onInput)
	case errors.Is(err, os.ErrDeadlineExceeded) && c.isInterrupted() && !c.driver.isDraining():
		c.move(onWoken)
	default:
		c.endFor(c.reasonUnread(err))
	}
}

// freeInput returns buffer space to read into. Space for a long command is reported before it is taken, and
// waits for evicted connections to end. If c is killed meanwhile, it is closed, and there is no space.
func (c *goroutineConn) freeInput() (free []byte) {
	if bytes := c.in.grownBytes(); bytes > maxKeptInput {
		c.reportedInput, c.reportedFree = len(c.in.unread()), bytes-len(c.in.unread())
		c.session.HoldsInput(c.reportedInput, c.reportedFree)
		if c.driver.evictions.await(c); c.isKilled() {
			c.move(onClose)
			return nil
		}
	}
	free = c.in.free(&c.driver.server.pool)
	c.reportInput()
	return free
}

// awaitWake waits until the session, which is Waiting, is woken. It reads on meanwhile, up to a bound, to
// notice a hangup.
func (c *goroutineConn) awaitWake() {
	reads := c.prepareRead()
	if c.wasWoken() {
		c.move(onWoken)
		return
	}
	left := maxKeptInput - len(c.in.unread())
	if !reads || c.hangup != peer.Connected || left <= 0 {
		select {
		case <-c.woken:
			c.move(onWoken)
		case <-c.killed:
			c.move(onClose)
		}
		return
	}
	free := c.freeInput()
	if free == nil {
		return
	}
	switch err := c.readInto(free[:min(len(free), left)]); {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded): // still Waiting
	case c.isKilled():
		c.move(onClose)
	case errors.Is(err, errUnread):
		c.endFor(ReasonOutput)
	default:
		c.hungUp(err)
	}
}

// hungUp tells the session, which is Waiting, that nothing more can be read.
func (c *goroutineConn) hungUp(err error) {
	half := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // the second is TLS's: EOF within a record
	if half && !c.out.broken() {                                          // a write may have seen the reset first
		c.hangup = peer.HalfClosed
		c.session.HungUp(c.hangup)
		return
	}
	c.hangup = peer.Reset
	c.move(onReset)
	c.session.HungUp(peer.Reset)
}

// readInto returns an error only if nothing was read.
func (c *goroutineConn) readInto(b []byte) error {
	n, err := c.source.Read(b)
	c.in.filled(n)
	if c.secured == nil {
		c.received.Add(uint64(n))
	}
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// reasonUnread returns why a read has failed.
func (c *goroutineConn) reasonUnread(err error) Reason {
	switch {
	case errors.Is(err, errUnread):
		return ReasonOutput
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return ReasonClient
	case c.driver.isDraining():
		return ReasonShutdown
	}
	reason := c.silenceReason(c.limits(), c.nowNs())
	if reason == ReasonInput {
		c.driver.server.logHalfSent(c.peer, len(c.in.unread()))
	}
	return reason
}

// prepareRead sets the read deadline, undoing that of Wake. It returns false if the driver is draining, when
// an expired deadline ends the connection.
func (c *goroutineConn) prepareRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = readForInput
	switch c.phase {
	case phaseIdle:
		c.observe(c.session)
	case phaseWaiting:
		c.reads = readForHangup
	default: // TLS's handshake
	}
	c.setDeadlineLocked()
	return !c.driver.isDraining()
}

func (c *goroutineConn) limitsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads == readForInput { // one that is interrupted sets its deadline itself
		c.setDeadlineLocked()
	}
}

func (c *goroutineConn) setDeadlineLocked() {
	var deadline time.Time
	if c.reads == readForInput {
		nowNs := c.nowNs()
		if dueNs := c.inputDueNs(c.limits(), nowNs); dueNs != 0 {
			deadline = deadlineIn(time.Duration(dueNs - nowNs))
		}
	}
	if has := !deadline.IsZero(); has || c.hasDeadline {
		_ = c.nc.SetReadDeadline(deadline)
		c.hasDeadline = has
	}
}

// interruptRead ends a waiting Read.
func (c *goroutineConn) interruptRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads != readToLinger {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
		c.reads, c.hasDeadline = readInterrupted, true
	}
}

func (c *goroutineConn) isInterrupted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads == readInterrupted
}

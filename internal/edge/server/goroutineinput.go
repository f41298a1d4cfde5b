package server

import (
	"errors"
	"io"
	"os"
	"time"

	"cellserver/internal/wire/peer"
)

// read waits for input. It returns false when the connection is to end.
func (c *goroutineConn) read() bool {
	if c.inErr != nil {
		c.end(ReasonClient)
		return false
	}
	if !c.prepareRead(readForInput) {
		c.end(ReasonShutdown)
		return false
	}
	if c.wasWoken() {
		return true
	}
	free, ok := c.freeInput()
	if !ok {
		return false
	}
	err := c.readInto(free)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) && c.isPoked() && !c.driver.isDraining() {
		return true
	}
	c.end(c.reasonUnread(err))
	return false
}

// freeInput returns buffer space to read into. Space for a long command is reported before it is taken, and
// waits for evicted connections to end; ok is false if c is killed meanwhile.
func (c *goroutineConn) freeInput() (free []byte, ok bool) {
	if bytes := c.in.grownBytes(); bytes > maxKeptInput && c.session != nil {
		c.reportedInput, c.reportedFree = len(c.in.unread()), bytes-len(c.in.unread())
		c.session.HoldsInput(c.reportedInput, c.reportedFree)
		if c.driver.evictions.await(c); c.isKilled() {
			return nil, false
		}
	}
	free = c.in.free(&c.driver.server.pool)
	c.reportInput()
	return free, true
}

// awaitWake waits until the session, which is Waiting, is woken. It reads on meanwhile, up to a bound, to
// notice a hangup. It returns false when the connection is to end.
func (c *goroutineConn) awaitWake() bool {
	for {
		reads := c.prepareRead(readForHangup)
		if c.wasWoken() {
			return true
		}
		left := maxKeptInput - len(c.in.unread())
		if !reads || c.inErr != nil || left <= 0 {
			select {
			case <-c.woken:
				return true
			case <-c.killed:
				return false
			}
		}
		free, ok := c.freeInput()
		if !ok {
			return false
		}
		switch err := c.readInto(free[:min(len(free), left)]); {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		case c.isKilled():
			return false
		case errors.Is(err, errUnread):
			c.end(ReasonOutput)
			return false
		default:
			c.hungUp(err)
		}
	}
}

// hungUp tells the session, which is Waiting, that nothing more can be read.
func (c *goroutineConn) hungUp(err error) {
	c.inErr = err
	half := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // the second is TLS's: EOF within a record
	if half && !c.out.broken() {                                          // a write may have seen the reset first
		c.session.HungUp(peer.HalfClosed)
		return
	}
	c.reset = true
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
func (c *goroutineConn) prepareRead(purpose readPurpose) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if purpose == readForInput && c.session != nil {
		c.observe(c.session)
	}
	c.readsFor, c.poked = purpose, false
	c.setDeadlineLocked()
	return !c.driver.isDraining()
}

func (c *goroutineConn) limitsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.poked && c.readsFor != readToLinger { // a poked connection sets its deadline itself
		c.setDeadlineLocked()
	}
}

func (c *goroutineConn) setDeadlineLocked() {
	var deadline time.Time
	if c.readsFor == readForInput {
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
	c.interruptReadLocked()
}

func (c *goroutineConn) interruptReadLocked() {
	if c.readsFor != readToLinger {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
		c.hasDeadline = true
	}
}

func (c *goroutineConn) isPoked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poked
}

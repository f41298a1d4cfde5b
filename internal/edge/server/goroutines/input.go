package goroutines

import (
	"errors"
	"io"
	"os"
	"time"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// read waits for input. It returns false when the connection is to end.
func (c *connection) read() bool {
	if c.inErr != nil {
		c.end(conn.ReasonClient)
		return false
	}
	if !c.prepareRead(readForInput) {
		c.end(conn.ReasonShutdown)
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
func (c *connection) freeInput() (free []byte, ok bool) {
	if bytes := c.in.GrownBytes(); bytes > conn.MaxKeptInput && c.session != nil {
		c.reportedInput, c.reportedFree = len(c.in.Unread()), bytes-len(c.in.Unread())
		c.session.HoldsInput(c.reportedInput, c.reportedFree)
		if c.driver.evictions.await(c); c.isKilled() {
			return nil, false
		}
	}
	free = c.in.Free(&c.driver.host.Pool)
	c.reportInput()
	return free, true
}

// awaitWake waits until the session, which is Waiting, is woken. It reads on meanwhile, up to a bound, to
// notice a hangup. It returns false when the connection is to end.
func (c *connection) awaitWake() bool {
	for {
		reads := c.prepareRead(readForHangup)
		if c.wasWoken() {
			return true
		}
		left := conn.MaxKeptInput - len(c.in.Unread())
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
			c.end(conn.ReasonOutput)
			return false
		default:
			c.hungUp(err)
		}
	}
}

// hungUp tells the session, which is Waiting, that nothing more can be read.
func (c *connection) hungUp(err error) {
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
func (c *connection) readInto(b []byte) error {
	n, err := c.source.Read(b)
	c.in.Filled(n)
	if c.secured == nil {
		c.received.Add(uint64(n))
	}
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// reasonUnread returns why a read has failed.
func (c *connection) reasonUnread(err error) conn.Reason {
	switch {
	case errors.Is(err, errUnread):
		return conn.ReasonOutput
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return conn.ReasonClient
	case c.driver.isDraining():
		return conn.ReasonShutdown
	}
	reason := c.SilenceReason(c.limits(), c.nowNs())
	if reason == conn.ReasonInput {
		c.driver.host.LogHalfSent(c.peer, len(c.in.Unread()))
	}
	return reason
}

// prepareRead sets the read deadline, undoing that of Wake. It returns false if the driver is draining, when
// an expired deadline ends the connection.
func (c *connection) prepareRead(purpose readPurpose) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if purpose == readForInput && c.session != nil {
		c.Observe(c.session)
	}
	c.readsFor, c.poked = purpose, false
	c.setDeadlineLocked()
	return !c.driver.isDraining()
}

func (c *connection) limitsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.poked && c.readsFor != readToLinger { // a poked connection sets its deadline itself
		c.setDeadlineLocked()
	}
}

func (c *connection) setDeadlineLocked() {
	var deadline time.Time
	if c.readsFor == readForInput {
		nowNs := c.nowNs()
		if dueNs := c.InputDueNs(c.limits(), nowNs); dueNs != 0 {
			deadline = conn.DeadlineIn(time.Duration(dueNs - nowNs))
		}
	}
	if has := !deadline.IsZero(); has || c.hasDeadline {
		_ = c.nc.SetReadDeadline(deadline)
		c.hasDeadline = has
	}
}

// interruptRead ends a waiting Read.
func (c *connection) interruptRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interruptReadLocked()
}

func (c *connection) interruptReadLocked() {
	if c.readsFor != readToLinger {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
		c.hasDeadline = true
	}
}

func (c *connection) isPoked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poked
}

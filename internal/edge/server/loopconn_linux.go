package server

import (
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/base/buffers"
	"cellserver/internal/wire/peer"
)

// loopConn is a peer.Conn that belongs to its loop's goroutine, but for Wake, Kill and Evict.
type loopConn struct {
	// The fields of every request come first: with thousands of clients, each cache line is a memory access.
	loop       *loop
	session    peer.Session
	in         input // unprocessed bytes; has no buffer while there are none
	fd         int32
	timer      int32  // see timers
	interest   uint32 // events registered with the poller
	unreported unreported
	queued     bool // in loop.ready
	holds      bool // the session was told of memory that the connection holds
	life
	dueNs   int64 // deadline for expired; 0 for none
	traffic traffic
	out     buffers.Queue

	peer    peer.Peer
	door    *GuestServer // nil for a client of RESP
	timerNs int64        // see timers
}

// unreported is input that the poller does not report again.
type unreported uint8

const (
	unreportedNone     unreported = iota
	unreportedPerhaps             // there may be some
	unreportedToTheEnd            // there may be some until EAGAIN, as a short read need not have got all
)

// refuse closes a connection that its loop has not taken.
func (c *loopConn) refuse() {
	_ = unix.Close(int(c.fd))
	c.loop.load.Add(-1)
	c.loop.server.left(c.peer, c.openedNs, ReasonShutdown, traffic{})
}

func (c *loopConn) Wake() { c.loop.inbox.put(&c.loop.inbox.woken, c) }

func (c *loopConn) Kill() { c.loop.inbox.put(&c.loop.inbox.killed, c) }

func (c *loopConn) Evict() {
	c.loop.inbox.put(&c.loop.inbox.evicted, c)
	c.loop.evicts.Store(true)
}

// guarded calls do; a panic closes only this connection.
func (c *loopConn) guarded(events uint32, do func(*loopConn, uint32)) {
	defer func() {
		if p := recover(); p != nil {
			c.loop.server.panicked(p, c.peer)
			c.closeFor(ReasonPanic)
		}
	}()
	do(c, events)
}

func (c *loopConn) start(uint32) {
	if c.door != nil {
		c.session = c.door.NewSession(c.peer, c)
	} else {
		c.session = c.loop.server.config.NewSession(c.peer, c)
	}
	c.interest = toRead | c.edge()
	if err := c.loop.poll.control(unix.EPOLL_CTL_ADD, int(c.fd), c.interest); err != nil {
		c.loop.server.logUnserved(c.peer, err)
		c.closeFor(ReasonSystem)
		return
	}
	c.on(onAdmitted)
	if c.loop.draining {
		c.drain(0)
	}
}

// on moves the connection by an event and sets its new deadline.
func (c *loopConn) on(e event) {
	switch c.move(e) {
	case awaitInput:
		c.awaitInput()
	case awaitWake:
		c.setDue(0)
	case awaitReader:
		c.dueIn(c.limits().OutputTimeout)
	case awaitHangup:
		c.dueIn(lingerTimeout)
	case handOver:
		c.handOver()
	case release:
		c.release()
	case keepDeadline, illegal:
	}
}

// awaitInput sets the deadline for input, if there may be one. Feed may have authenticated the client.
func (c *loopConn) awaitInput() {
	limits := c.limits()
	if !c.handshakeDone || c.dueNs != 0 || c.halfSentNs != 0 || limits.IdleTimeout > 0 {
		c.observe(c.session)
		c.setDue(c.inputDueNs(limits, c.loop.nowNs()))
	}
}

func (c *loopConn) limitsChanged(uint32) {
	if c.phase.isOpen() {
		c.awaitInput()
	}
}

func (c *loopConn) setDue(ns int64) {
	c.dueNs = ns
	c.loop.timers.update(c)
}

func (c *loopConn) dueIn(d time.Duration) {
	if d == 0 {
		c.setDue(0)
		return
	}
	c.setDue(later(c.loop.nowNs(), d))
}

func (c *loopConn) expired(uint32) {
	switch {
	case c.phase.isBlocked():
		c.loop.server.logUnread(c.peer, c.out.Len())
		c.closeFor(ReasonOutput)
	case !c.phase.isOpen():
		c.on(onClose)
	default:
		reason := c.silenceReason(c.limits(), c.loop.nowNs())
		if reason == ReasonInput {
			c.loop.server.logHalfSent(c.peer, len(c.in.unread()))
		}
		c.endFor(reason)
	}
}

// reportHeld tells the session how much memory the connection holds, if it holds or held any.
func (c *loopConn) reportHeld() {
	holds := c.in.buf != nil || c.out.Len() > 0
	if !holds && !c.holds {
		return
	}
	c.holds = holds
	c.session.HoldsInput(len(c.in.unread()), c.in.spare())
	c.session.HoldsOutput(c.out.Held())
}

// gone holds the events that report, unasked, that both directions are closed.
const gone = unix.EPOLLERR | unix.EPOLLHUP

func (c *loopConn) handleEvents(events uint32) {
	switch {
	case c.phase.isWaiting():
		c.handleEventsWaiting(events)
		return
	case events&unix.EPOLLOUT != 0 && !c.flush():
		return
	case c.interest&unix.EPOLLIN == 0:
		if events&gone != 0 {
			c.on(onClose)
		}
		return
	}
	if c.noteUnreported(events); events&(toRead|gone) != 0 && !c.queued {
		c.read()
	}
}

// handleEventsWaiting handles events while the session is Waiting and nothing is read.
func (c *loopConn) handleEventsWaiting(events uint32) {
	if c.interest&unix.EPOLLET != 0 { // else they are reported again
		c.noteUnreported(events)
	}
	switch {
	case events&gone != 0:
		c.lost()
	case events&unix.EPOLLOUT != 0 && !c.flush():
	case events&unix.EPOLLRDHUP != 0 && c.hangup == peer.Connected:
		c.hangup = peer.HalfClosed
		c.session.HungUp(peer.HalfClosed)
		c.listen() // drop the event, which would repeat
	}
}

// noteUnreported notes what events of input leave to read.
func (c *loopConn) noteUnreported(events uint32) {
	switch {
	case events&(unix.EPOLLRDHUP|unix.EPOLLPRI|gone) != 0:
		c.unreported = unreportedToTheEnd // neither EOF nor what follows urgent data is reported again
	case events&unix.EPOLLIN != 0:
		c.unreported = max(c.unreported, unreportedPerhaps)
	}
}

// lost handles a client that is gone in both directions. A Waiting session is told, and input read before is
// still executed; the poller would report the hangup again and again meanwhile.
func (c *loopConn) lost() {
	if !c.phase.isWaiting() || c.loop.poll.control(unix.EPOLL_CTL_DEL, int(c.fd), 0) != nil {
		c.on(onClose)
		return
	}
	c.on(onReset)
	c.hangup, c.interest, c.unreported = peer.Reset, 0, unreportedToTheEnd
	c.out.Clear(&c.loop.server.pool)
	c.reportHeld()
	c.session.HungUp(peer.Reset)
}

func (c *loopConn) read() {
	l := c.loop
	own := len(c.in.unread()) > 0
	buf := l.in
	if own {
		buf = c.in.free(&l.server.pool)
	}
	n, again, err := readOnce(int(c.fd), buf)
	switch {
	case n == len(buf):
		c.unreported = max(c.unreported, unreportedPerhaps)
	case again || c.unreported == unreportedPerhaps:
		c.unreported = unreportedNone
	}
	switch {
	case again:
		if c.hangup == peer.Reset {
			c.on(onClose)
		}
		return
	case err != nil, n == 0 && c.phase == phaseLingering:
		c.on(onClose)
		return
	case c.phase == phaseLingering:
		c.queue()
		return
	case n == 0:
		c.endFor(ReasonClient)
		return
	}
	c.traffic.received += uint64(n)
	l.traffic.received += uint64(n)
	c.on(onInput)
	if own {
		c.in.filled(n)
		c.process(c.in.unread(), true)
	} else {
		c.process(buf[:n], false)
	}
}

// process feeds the session, which is executing, once with b, from the connection's own buffer or the loop's,
// and keeps the rest.
func (c *loopConn) process(b []byte, own bool) {
	l := c.loop
	n, replies, status := c.session.Feed(b, l.out[:0])
	if cap(replies) <= maxKeptReplies {
		l.out = replies
	}
	switch {
	case own:
		if c.in.consumed(n); len(c.in.unread()) == 0 {
			c.in.release(&l.server.pool)
		}
	case n < len(b):
		c.in.keep(&l.server.pool, b[n:])
	}
	if status == peer.Abort {
		c.closeFor(ReasonSession)
		return
	}
	if !c.send(replies) {
		return
	}
	if left := len(c.in.unread()); left > 0 || c.halfSentNs != 0 {
		c.fed(n, left, c.mayKeep(), status, l.nowNs)
	}
	c.reportHeld()
	if status == peer.Close {
		c.endFor(ReasonSession)
		return
	}
	if c.on(fedEvent(status)); c.phase == phaseClosed {
		return
	}
	if l.draining && c.phase == phaseIdle {
		c.endFor(ReasonShutdown)
		return
	}
	c.listen()
	c.queue()
}

// queue schedules another turn if the connection has a use for one.
func (c *loopConn) queue() {
	if !c.queued && c.phase.takesInput() && (c.unreported != unreportedNone || c.phase == phaseExecuting) {
		c.queued = true
		c.loop.ready = append(c.loop.ready, c)
	}
}

func (c *loopConn) runTurn(uint32) {
	c.queued = false
	switch {
	case c.phase == phaseExecuting:
		c.process(c.in.unread(), true)
	case c.phase.takesInput() && c.unreported != unreportedNone:
		c.read()
	}
}

// woken handles Wake, also of a session that is not Waiting: it may send unasked.
func (c *loopConn) woken(uint32) {
	switch c.on(onWoken); c.phase {
	case phaseExecuting:
		c.process(c.in.unread(), true)
	case phaseBlocked:
		c.listen() // not for a FIN, which would be reported again and again
	default:
	}
}

func (c *loopConn) drain(uint32) {
	if c.phase == phaseIdle {
		c.endFor(ReasonShutdown)
	}
}

const toRead = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI

// edge returns EPOLLET, to have input reported once rather than in each wait, which would cost the kernel
// work. A read from a unix socket may return less than is there, so those stay level-triggered.
func (c *loopConn) edge() uint32 {
	if c.peer.Unix {
		return 0
	}
	return unix.EPOLLET
}

// listen registers with the poller what the connection waits for.
func (c *loopConn) listen() {
	var interest uint32
	switch {
	case c.phase.isWaiting() && c.interest == toRead|unix.EPOLLET && c.unreported != unreportedToTheEnd && c.out.Len() == 0:
		return // one spurious event costs less than two changes
	case c.phase.takesInput():
		interest = toRead
		if c.out.Len() == 0 {
			interest |= c.edge()
		}
	case c.phase.isWaiting() && c.hangup == peer.Connected:
		interest = unix.EPOLLRDHUP
	}
	if c.out.Len() > 0 {
		interest |= unix.EPOLLOUT
	}
	if interest == c.interest || c.hangup == peer.Reset || c.phase == phaseClosed {
		return
	}
	c.interest = interest
	if err := c.loop.poll.control(unix.EPOLL_CTL_MOD, int(c.fd), interest); err != nil {
		c.on(onClose)
	}
}

// closeFor closes the connection at once, also after it was handed over.
func (c *loopConn) closeFor(r Reason) {
	if c.door != nil && c.door.end != nil {
		c.door.end(r)
		return
	}
	c.because(r)
	c.on(onClose)
}

func (c *loopConn) release() {
	c.endSession()
	c.loop.server.ended(c.session, c.peer, &c.life, c.traffic)
	c.loop.forget(c)
	c.loop.server.release(c.peer)
}

func (c *loopConn) endSession() {
	c.in.release(&c.loop.server.pool)
	c.out.Clear(&c.loop.server.pool)
	c.loop.server.closeSession(c.session, c.peer)
}

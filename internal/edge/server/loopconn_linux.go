package server

import (
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/base/buffers"
	"cellserver/internal/wire/peer"
)

// loopConn belongs to its loop's goroutine, but for Wake, Kill and Evict.
type loopConn struct {
	// The fields of every request come first: with thousands of clients, each cache line is a memory access.
	loop     *loop
	session  peer.Session
	in       input // unprocessed bytes; has no buffer while there are none
	fd       int32
	timer    int32  // see timers
	interest uint32 // events registered with the poller
	phase    phase
	waiting  bool // the session is Waiting, to be woken through the inbox
	hungUp   bool // the session was told that the client sends no more
	reset    bool // the client takes no more replies, and the poller no longer watches
	more     bool // the session may have more to execute of its input
	readable bool // there may be input that the poller does not report again
	toTheEnd bool // read until EAGAIN: a short read need not have got all
	queued   bool // in loop.ready
	holds    bool // the session was told of memory that the connection holds
	blocked  bool // too much output is pending: not read, not processed
	life
	dueNs   int64 // deadline for expired; 0 is none
	traffic traffic
	out     buffers.Queue

	peer    peer.Peer
	timerNs int64 // see timers
}

type phase uint8

const (
	phaseOpen      phase = iota
	phaseFlushing        // closes when its replies are sent
	phaseFinishing       // lingers when its replies are sent
	phaseLingering       // drops input until the client closes too
	phaseClosed
)

func newLoopConn(l *loop, fd int, p peer.Peer) *loopConn {
	return &loopConn{loop: l, fd: int32(fd), peer: p, life: life{openedNs: l.nowNs()}}
}

// refuse closes a connection that its loop has not taken.
func (c *loopConn) refuse() {
	_ = unix.Close(int(c.fd))
	c.loop.load.Add(-1)
	c.because(ReasonShutdown)
	c.loop.server.ended(nil, c.peer, &c.life, traffic{})
	c.loop.server.release(c.peer)
}

// Wake implements peer.Conn.
func (c *loopConn) Wake() { c.loop.inbox.put(&c.loop.inbox.woken, c) }

// Kill implements peer.Conn.
func (c *loopConn) Kill() { c.loop.inbox.put(&c.loop.inbox.killed, c) }

// Evict implements peer.Conn.
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
	c.session = c.loop.server.config.NewSession(c.peer, c)
	c.interest = toRead | c.edge()
	if err := c.loop.poll.control(unix.EPOLL_CTL_ADD, int(c.fd), c.interest); err != nil {
		c.loop.server.logUnserved(c.peer, err)
		c.closeFor(ReasonSystem)
		return
	}
	c.awaitInput()
	if c.loop.draining {
		c.drain(0)
	}
}

// awaitInput sets the deadline for input.
func (c *loopConn) awaitInput() {
	c.observe(c.session)
	c.setDue(c.inputDueNs(c.loop.server.limits.Load(), c.loop.nowNs()))
}

func (c *loopConn) limitsChanged(uint32) {
	if c.phase == phaseOpen && !c.waiting && !c.blocked {
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

// expired ends a connection whose deadline has passed.
func (c *loopConn) expired() {
	switch {
	case c.phase != phaseOpen:
		c.close()
	case c.blocked:
		c.loop.server.logUnread(c.peer, c.out.Len())
		c.closeFor(ReasonOutput)
	default:
		reason := c.silenceReason(c.loop.server.limits.Load(), c.loop.nowNs())
		if reason == ReasonInput {
			c.loop.server.logHalfSent(c.peer, len(c.in.unread()))
		}
		c.endFor(reason)
	}
}

// reportHeld tells the session how much memory the connection holds, if it holds or held any.
func (c *loopConn) reportHeld() {
	if !c.in.hasBuffer() && c.out.Len() == 0 && !c.holds {
		return
	}
	c.holds = c.in.hasBuffer() || c.out.Len() > 0
	c.session.HoldsInput(len(c.in.unread()), c.in.spare())
	c.session.HoldsOutput(c.out.Held())
}

// gone holds the events that report, unasked, that both directions are closed.
const gone = unix.EPOLLERR | unix.EPOLLHUP

// happened handles events of the poller.
func (c *loopConn) happened(events uint32) {
	switch {
	case c.waiting:
		c.happenedWaiting(events)
		return
	case events&unix.EPOLLOUT != 0 && !c.flush():
		return
	case c.interest&unix.EPOLLIN == 0:
		if events&gone != 0 {
			c.close()
		}
		return
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLPRI|gone) != 0 {
		c.toTheEnd = true // neither EOF nor what follows urgent data is reported again
	}
	if events&(toRead|gone) != 0 {
		c.readable = true
		if !c.queued {
			c.read()
		}
	}
}

// happenedWaiting handles events while the session is Waiting and nothing is read.
func (c *loopConn) happenedWaiting(events uint32) {
	if c.interest&unix.EPOLLET != 0 && events&toRead != 0 {
		c.readable = true // edge-triggered: not reported again
		c.toTheEnd = c.toTheEnd || events&(unix.EPOLLRDHUP|unix.EPOLLPRI) != 0
	}
	switch {
	case events&gone != 0:
		c.lost()
	case events&unix.EPOLLOUT != 0 && !c.flush():
	case events&unix.EPOLLRDHUP != 0 && !c.hungUp:
		c.hungUp = true
		c.session.HungUp(peer.HalfClosed)
		c.listen() // drop the event, which would repeat
	}
}

// lost handles a client that is gone in both directions. A Waiting session is told, and input read before is
// still executed; the poller would report the hangup again and again meanwhile.
func (c *loopConn) lost() {
	if !c.waiting || c.loop.poll.control(unix.EPOLL_CTL_DEL, int(c.fd), 0) != nil {
		c.close()
		return
	}
	c.reset, c.interest = true, 0
	c.readable, c.toTheEnd = true, true
	c.out.Clear(&c.loop.server.pool)
	c.blocked = false
	c.reportHeld()
	c.setDue(0)
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
	c.readable = n == len(buf) || c.toTheEnd && !again
	switch {
	case again:
		if c.reset {
			c.close()
		}
		return
	case c.phase == phaseLingering:
		if n == 0 {
			c.close()
			return
		}
		c.queue()
		return
	case err != nil:
		c.close()
		return
	case n == 0:
		c.endFor(ReasonClient)
		return
	}
	c.traffic.received += uint64(n)
	l.traffic.received += uint64(n)
	if own {
		c.in.filled(n)
		c.process(c.in.unread(), true)
	} else {
		c.process(buf[:n], false)
	}
}

// process feeds the session once with b, from the connection's own buffer or the loop's, and keeps the rest.
func (c *loopConn) process(b []byte, own bool) {
	l := c.loop
	n, replies, status := c.session.Feed(b, l.out[:0])
	c.more = status == peer.More
	if cap(replies) <= maxKeptReplies {
		l.out = replies
	}
	switch {
	case own:
		c.in.consumed(n)
		c.in.releaseIfEmpty(&l.server.pool)
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
	if left := len(c.in.unread()); left > halfSentBytes || c.halfSentNs != 0 {
		c.fed(n, left, status, l.nowNs)
	}
	c.reportHeld()
	if !c.blocked && (!c.handshakeDone || c.dueNs != 0 || c.halfSentNs != 0 || l.server.limits.Load().IdleTimeout > 0) {
		c.awaitInput() // after Feed, which may have authenticated the client
	}
	switch status {
	case peer.Close:
		c.endFor(ReasonSession)
		return
	case peer.Waiting:
		c.waiting = true
		if !c.blocked {
			c.setDue(0)
		}
	case peer.NeedInput:
		if l.draining && !c.blocked {
			c.endFor(ReasonShutdown)
			return
		}
	case peer.More, peer.Abort: // handled above
	}
	c.listen()
	c.queue()
}

// queue schedules another turn if the connection has a use for one.
func (c *loopConn) queue() {
	if (c.more || c.readable) && !c.queued && c.takesInput() {
		c.queued = true
		c.loop.ready = append(c.loop.ready, c)
	}
}

// goOn is that turn.
func (c *loopConn) goOn(uint32) {
	c.queued = false
	switch {
	case !c.takesInput():
	case c.more:
		c.process(c.in.unread(), true)
	case c.readable:
		c.read()
	}
}

func (c *loopConn) takesInput() bool {
	return c.phase == phaseLingering || c.phase == phaseOpen && !c.waiting && !c.blocked
}

func (c *loopConn) woken(uint32) {
	if c.phase != phaseOpen {
		return
	}
	c.waiting = false // or the session sends unasked
	if c.blocked {
		return // unblock resumes it
	}
	c.awaitInput()
	c.process(c.in.unread(), true)
}

func (c *loopConn) drain(uint32) {
	if c.phase == phaseOpen && !c.waiting && !c.more && !c.blocked {
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
	case c.waiting && c.interest == toRead|unix.EPOLLET && !c.toTheEnd && c.out.Len() == 0:
		return // one spurious event costs less than two changes
	case c.takesInput():
		interest = toRead
		if c.out.Len() == 0 {
			interest |= c.edge()
		}
	case c.waiting && !c.hungUp:
		interest = unix.EPOLLRDHUP
	}
	if c.out.Len() > 0 {
		interest |= unix.EPOLLOUT
	}
	if interest == c.interest || c.reset || c.phase == phaseClosed {
		return
	}
	c.interest = interest
	if err := c.loop.poll.control(unix.EPOLL_CTL_MOD, int(c.fd), interest); err != nil {
		c.close()
	}
}

func (c *loopConn) closeFor(r Reason) {
	c.because(r)
	c.close()
}

// close closes the connection at once.
func (c *loopConn) close() {
	if c.phase != phaseClosed {
		c.phase = phaseClosed
		c.in.release(&c.loop.server.pool)
		c.out.Clear(&c.loop.server.pool)
		c.loop.server.closeSession(c.session, c.peer)
		c.loop.server.ended(c.session, c.peer, &c.life, c.traffic)
		c.loop.forget(c)
	}
}

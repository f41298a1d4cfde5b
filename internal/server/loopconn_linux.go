package server

import (
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/peer"
)

// loopConn is a connection of a loop. All but Wake and Kill belongs to the loop's goroutine.
type loopConn struct {
	// What every request needs comes first: with thousands of clients each cache line is a wait for memory.
	loop     *loop
	session  peer.Session
	in       input // only what is not processed; without a buffer while that is nothing
	fd       int
	interest uint32 // what the poller was asked for
	edge     uint32 // EPOLLET, or 0 for a unix socket, of which a read may get less than is there
	phase    phase
	waiting  bool // the session is: it is woken through the inbox
	more     bool // the session may have more to execute in what was read
	readable bool // there may be more to read, of which the poller says nothing again
	toTheEnd bool // a read that got less than it could take need not have got all
	detached bool // from the poller, for the client is gone; what it has sent is still executed
	queued   bool // in loop.ready
	blocked  bool // too much is pending: not read from, nothing processed
	greeted  bool // the client was authenticated once
	timed    bool // input has to come by some time
	why      end
	traffic  traffic
	out      blocks

	peer     peer.Peer
	openedNs int64
	dueNs    int64 // when expired is to be called, by the loop's clock; 0 for never
	timerNs  int64 // see timers
	timer    int
}

type phase uint8

const (
	phaseOpen      phase = iota
	phaseFlushing        // closes when its replies are sent
	phaseFinishing       // lingers when they are
	phaseLingering       // reads and throws away, until the client has closed, too
	phaseClosed
)

func newLoopConn(l *loop, fd int, p peer.Peer) *loopConn {
	c := &loopConn{loop: l, fd: fd, peer: p, edge: unix.EPOLLET}
	if p.Unix {
		c.edge = 0
	}
	return c
}

// refuse closes a connection that no loop has taken.
func (c *loopConn) refuse() {
	_ = unix.Close(c.fd)
	c.loop.load.Add(-1)
	c.loop.server.left(nil, c.peer, endShutdown, traffic{}, 0)
	c.loop.server.ended()
}

// Wake implements peer.Conn.
func (c *loopConn) Wake() { c.loop.inbox.wake(c) }

// Kill implements peer.Conn.
func (c *loopConn) Kill() { c.loop.inbox.kill(c) }

// guarded calls do; if that panics, the connection is closed and nothing else.
func (c *loopConn) guarded(events uint32, do func(*loopConn, uint32)) {
	defer func() {
		if p := recover(); p != nil {
			c.loop.server.panicked(p, c.peer)
			c.closeFor(endPanic)
		}
	}()
	do(c, events)
}

func (c *loopConn) start(uint32) {
	c.openedNs = c.loop.nowNs()
	c.session = c.loop.server.config.NewSession(c.peer, c)
	c.interest = toRead | c.edge
	if err := c.loop.poll.control(unix.EPOLL_CTL_ADD, c.fd, c.interest); err != nil {
		if count := c.loop.server.unserved.Due(c.loop.nowNs()); count > 0 {
			c.loop.server.config.Log.Error("cannot serve a client; connection closed", "client", c.peer.Addr, "error", err, "count", count,
				"hint", "where it says no space left: raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
		}
		c.closeFor(endSystem)
		return
	}
	c.awaitInput()
	if c.loop.draining {
		c.drain(0)
	}
}

// awaitInput sets the time by which the client must have sent something.
func (c *loopConn) awaitInput() {
	limits := c.loop.server.limits.Load()
	c.greeted = c.greeted || c.session.Authenticated()
	mustGreet := limits.HandshakeTimeout > 0 && !c.greeted
	mustSpeak := limits.IdleTimeout > 0 && !c.session.Monitors()
	c.timed = mustSpeak || mustGreet
	if !c.timed {
		c.dueNs = 0
		return
	}
	due := int64(0)
	if mustSpeak {
		due = c.loop.nowNs() + int64(limits.IdleTimeout)
	}
	if handshake := c.openedNs + int64(limits.HandshakeTimeout); mustGreet && (due == 0 || handshake < due) {
		due = handshake
	}
	c.setDue(due)
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
	c.setDue(c.loop.nowNs() + int64(d))
}

// expired ends a connection whose time is over.
func (c *loopConn) expired() {
	switch {
	case c.phase == phaseOpen && c.blocked:
		c.loop.server.tellUnread(c.peer, c.out.bytes)
		c.closeFor(endOutput)
	case c.phase == phaseOpen && !c.greeted && c.isLateToGreet():
		c.endFor(endHandshake, phaseFlushing)
	case c.phase == phaseOpen:
		c.endFor(endIdle, phaseFlushing)
	default:
		c.close()
	}
}

func (c *loopConn) isLateToGreet() bool {
	timeout := int64(c.loop.server.limits.Load().HandshakeTimeout)
	return timeout > 0 && c.loop.nowNs()-c.openedNs >= timeout
}

// happened is what the poller reports.
func (c *loopConn) happened(events uint32) {
	const gone = unix.EPOLLERR | unix.EPOLLHUP // reported without being asked for
	if events&unix.EPOLLOUT != 0 && !c.flush() {
		return
	}
	if c.interest&unix.EPOLLIN == 0 {
		if events&gone != 0 {
			c.lost()
		}
		return
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLPRI|gone) != 0 {
		c.toTheEnd = true // which is not reported again, nor is what stands behind urgent data
	}
	if events&(toRead|gone) != 0 {
		c.readable = true
		if !c.queued {
			c.read()
		}
	}
}

// lost is the client gone while nothing is read from it. Where its session waits, the commands that have been read
// behind the one that it waits for are still to be executed.
func (c *loopConn) lost() {
	if c.phase != phaseOpen || !c.waiting || c.loop.poll.control(unix.EPOLL_CTL_DEL, c.fd, 0) != nil {
		c.close()
		return
	}
	c.detached, c.interest = true, 0
}

func (c *loopConn) read() {
	l := c.loop
	own := len(c.in.unread()) > 0
	buf := l.in
	if own {
		buf = c.in.free()
	}
	n, again, err := readOnce(c.fd, buf)
	c.readable = n == len(buf) || c.toTheEnd && !again
	switch {
	case again:
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
		c.end(phaseFlushing)
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

// process feeds the session once with b, which is in the connection's own buffer or in the loop's, and keeps what
// is left.
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
		c.in.releaseIfEmpty()
	case n < len(b):
		c.in.keep(b[n:])
	}
	if status == peer.Abort {
		c.closeFor(endSession)
		return
	}
	if !c.send(replies) {
		return
	}
	if !c.blocked && (!c.greeted || c.timed || l.server.limits.Load().IdleTimeout > 0) {
		c.awaitInput() // only now: the input may have authenticated the client
	}
	switch status {
	case peer.Close:
		c.endFor(endSession, phaseFinishing)
		return
	case peer.Waiting:
		c.waiting = true
		if !c.blocked {
			c.setDue(0)
		}
	case peer.NeedInput:
		if l.draining && !c.blocked {
			c.endFor(endShutdown, phaseFinishing)
			return
		}
	case peer.More, peer.Abort: // dealt with above
	}
	c.listen()
	c.queue()
}

// queue gives the connection another turn if it has a use for one.
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
	c.waiting = false // or the session has something to say of its own accord
	if c.blocked {
		return // goes on when that ends
	}
	c.awaitInput()
	c.process(c.in.unread(), true)
}

func (c *loopConn) drain(uint32) {
	if c.phase == phaseOpen && !c.waiting && !c.more && !c.blocked {
		c.endFor(endShutdown, phaseFinishing)
	}
}

const toRead = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI

// listen asks the poller for what the connection waits for. Input alone is reported once, when it comes, and not for
// as long as it is there, which would be work for the kernel in each wait.
func (c *loopConn) listen() {
	var interest uint32
	if c.takesInput() {
		interest = toRead
	}
	if c.out.bytes > 0 {
		interest |= unix.EPOLLOUT
	} else if interest != 0 {
		interest |= c.edge
	}
	if interest == c.interest || c.phase == phaseClosed {
		return
	}
	op := unix.EPOLL_CTL_MOD
	if c.detached {
		op, c.detached = unix.EPOLL_CTL_ADD, false
	}
	c.interest = interest
	if err := c.loop.poll.control(op, c.fd, interest); err != nil {
		c.close()
	}
}

// because notes why the connection ends; the first reason counts.
func (c *loopConn) because(why end) {
	if c.why == endClient {
		c.why = why
	}
}

func (c *loopConn) closeFor(why end) {
	c.because(why)
	c.close()
}

// close ends the connection at once.
func (c *loopConn) close() {
	if c.phase != phaseClosed {
		c.phase = phaseClosed
		c.in, c.out = input{}, blocks{}
		c.loop.server.closeSession(c.session, c.peer)
		c.loop.server.left(c.session, c.peer, c.why, c.traffic, time.Duration(c.loop.nowNs()-c.openedNs))
		c.loop.forget(c)
	}
}

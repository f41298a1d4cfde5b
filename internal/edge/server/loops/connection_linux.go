package loops

import (
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/base/buffers"
	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// connection is one of a loop. All but Wake and Kill belongs to the loop's goroutine.
type connection struct {
	// What every request needs comes first: with thousands of clients each cache line is a wait for memory.
	loop     *loop
	session  peer.Session
	in       conn.Input // only what is not processed; without a buffer while that is nothing
	fd       int32
	timer    int32  // see timers
	interest uint32 // what the poller was asked for
	phase    phase
	waiting  bool // the session is: it is woken through the inbox
	hungUp   bool // the session knows that the client sends no more
	reset    bool // nobody is there any more to take replies, and the poller watches no longer
	more     bool // the session may have more to execute in what was read
	readable bool // there may be more to read, of which the poller says nothing again
	toTheEnd bool // a read that got less than it could take need not have got all
	queued   bool // in loop.ready
	holds    bool // the session knows of memory that the connection holds
	blocked  bool // too much is pending: not read from, nothing processed
	conn.Life
	dueNs   int64 // when expired is to be called; 0 for never
	traffic conn.Traffic
	out     buffers.Queue

	peer    peer.Peer
	timerNs int64 // see timers
}

type phase uint8

const (
	phaseOpen      phase = iota
	phaseFlushing        // closes when its replies are sent
	phaseFinishing       // lingers when they are
	phaseLingering       // reads and throws away, until the client has closed, too
	phaseClosed
)

func newConnection(l *loop, fd int, p peer.Peer) *connection {
	return &connection{loop: l, fd: int32(fd), peer: p, Life: conn.Life{OpenedNs: l.nowNs()}}
}

// refuse closes a connection that no loop has taken.
func (c *connection) refuse() {
	_ = unix.Close(int(c.fd))
	c.loop.load.Add(-1)
	c.Because(conn.ReasonShutdown)
	c.loop.host.Ended(nil, c.peer, &c.Life, conn.Traffic{})
	c.loop.host.Release(c.peer)
}

// Wake implements peer.Conn.
func (c *connection) Wake() { c.loop.inbox.wake(c) }

// Kill implements peer.Conn.
func (c *connection) Kill() { c.loop.inbox.kill(c) }

// Evict implements peer.Conn.
func (c *connection) Evict() {
	c.loop.inbox.evict(c)
	c.loop.evicts.Store(true)
}

// guarded calls do; if that panics, the connection is closed and nothing else.
func (c *connection) guarded(events uint32, do func(*connection, uint32)) {
	defer func() {
		if p := recover(); p != nil {
			c.loop.host.Panicked(p, c.peer)
			c.closeFor(conn.ReasonPanic)
		}
	}()
	do(c, events)
}

func (c *connection) start(uint32) {
	c.session = c.loop.host.NewSession(c.peer, c)
	c.interest = toRead | c.edge()
	if err := c.loop.poll.control(unix.EPOLL_CTL_ADD, int(c.fd), c.interest); err != nil {
		c.loop.host.LogUnserved(c.peer, err)
		c.closeFor(conn.ReasonSystem)
		return
	}
	c.awaitInput()
	if c.loop.draining {
		c.drain(0)
	}
}

// awaitInput sets the time by which the client must have sent something.
func (c *connection) awaitInput() {
	c.Observe(c.session)
	c.setDue(c.InputDueNs(c.loop.host.Limits(), c.loop.nowNs()))
}

func (c *connection) limitsChanged(uint32) {
	if c.phase == phaseOpen && !c.waiting && !c.blocked {
		c.awaitInput()
	}
}

func (c *connection) setDue(ns int64) {
	c.dueNs = ns
	c.loop.timers.update(c)
}

func (c *connection) dueIn(d time.Duration) {
	if d == 0 {
		c.setDue(0)
		return
	}
	c.setDue(conn.Later(c.loop.nowNs(), d))
}

// expired ends a connection whose time is over.
func (c *connection) expired() {
	switch {
	case c.phase != phaseOpen:
		c.close()
	case c.blocked:
		c.loop.host.LogUnread(c.peer, c.out.Len())
		c.closeFor(conn.ReasonOutput)
	default:
		reason := c.SilenceReason(c.loop.host.Limits(), c.loop.nowNs())
		if reason == conn.ReasonInput {
			c.loop.host.LogHalfSent(c.peer, len(c.in.Unread()))
		}
		c.endFor(reason)
	}
}

// tellHeld tells the session what the connection holds, if that is anything or was.
func (c *connection) tellHeld() {
	if !c.in.HasBuffer() && c.out.Len() == 0 && !c.holds {
		return
	}
	c.holds = c.in.HasBuffer() || c.out.Len() > 0
	c.session.HoldsInput(len(c.in.Unread()), c.in.Spare())
	c.session.HoldsOutput(c.out.Held())
}

// gone is what the poller reports, without being asked, of a connection that has ended in both directions.
const gone = unix.EPOLLERR | unix.EPOLLHUP

// happened is what the poller reports.
func (c *connection) happened(events uint32) {
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
		c.toTheEnd = true // which is not reported again, nor is what stands behind urgent data
	}
	if events&(toRead|gone) != 0 {
		c.readable = true
		if !c.queued {
			c.read()
		}
	}
}

// happenedWaiting is happened while the session is Waiting and nothing is read.
func (c *connection) happenedWaiting(events uint32) {
	if c.interest&unix.EPOLLET != 0 && events&toRead != 0 {
		c.readable, c.toTheEnd = true, c.toTheEnd || events&(unix.EPOLLRDHUP|unix.EPOLLPRI) != 0 // which is not reported again
	}
	switch {
	case events&gone != 0:
		c.lost()
	case events&unix.EPOLLOUT != 0 && !c.flush():
	case events&unix.EPOLLRDHUP != 0 && !c.hungUp:
		c.hungUp = true
		c.session.HungUp(peer.HalfClosed)
		c.listen() // no longer for what is so from now on
	}
}

// lost is the client gone in both directions. While the session is Waiting, it is told, and what the client has sent
// is still executed; the poller would report the end again and again meanwhile.
func (c *connection) lost() {
	if !c.waiting || c.loop.poll.control(unix.EPOLL_CTL_DEL, int(c.fd), 0) != nil {
		c.close()
		return
	}
	c.reset, c.interest = true, 0
	c.readable, c.toTheEnd = true, true
	c.out.Clear(&c.loop.host.Pool)
	c.blocked = false
	c.tellHeld()
	c.setDue(0)
	c.session.HungUp(peer.Reset)
}

func (c *connection) read() {
	l := c.loop
	own := len(c.in.Unread()) > 0
	buf := l.in
	if own {
		buf = c.in.Free(&l.host.Pool)
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
		c.endFor(conn.ReasonClient)
		return
	}
	c.traffic.Received += uint64(n)
	l.traffic.Received += uint64(n)
	if own {
		c.in.Filled(n)
		c.process(c.in.Unread(), true)
	} else {
		c.process(buf[:n], false)
	}
}

// process feeds the session once with b, which is in the connection's own buffer or in the loop's, and keeps what
// is left.
func (c *connection) process(b []byte, own bool) {
	l := c.loop
	n, replies, status := c.session.Feed(b, l.out[:0])
	c.more = status == peer.More
	if cap(replies) <= conn.MaxKeptReplies {
		l.out = replies
	}
	switch {
	case own:
		c.in.Consumed(n)
		c.in.ReleaseIfEmpty(&l.host.Pool)
	case n < len(b):
		c.in.Keep(&l.host.Pool, b[n:])
	}
	if status == peer.Abort {
		c.closeFor(conn.ReasonSession)
		return
	}
	if !c.send(replies) {
		return
	}
	if left := len(c.in.Unread()); left > conn.HalfSentBytes || c.HalfSentNs != 0 {
		c.Fed(n, left, status, l.nowNs)
	}
	c.tellHeld()
	if !c.blocked && (!c.HandshakeDone || c.dueNs != 0 || c.HalfSentNs != 0 || l.host.Limits().IdleTimeout > 0) {
		c.awaitInput() // only now: the input may have authenticated the client
	}
	switch status {
	case peer.Close:
		c.endFor(conn.ReasonSession)
		return
	case peer.Waiting:
		c.waiting = true
		if !c.blocked {
			c.setDue(0)
		}
	case peer.NeedInput:
		if l.draining && !c.blocked {
			c.endFor(conn.ReasonShutdown)
			return
		}
	case peer.More, peer.Abort: // dealt with above
	}
	c.listen()
	c.queue()
}

// queue gives the connection another turn if it has a use for one.
func (c *connection) queue() {
	if (c.more || c.readable) && !c.queued && c.takesInput() {
		c.queued = true
		c.loop.ready = append(c.loop.ready, c)
	}
}

// goOn is that turn.
func (c *connection) goOn(uint32) {
	c.queued = false
	switch {
	case !c.takesInput():
	case c.more:
		c.process(c.in.Unread(), true)
	case c.readable:
		c.read()
	}
}

func (c *connection) takesInput() bool {
	return c.phase == phaseLingering || c.phase == phaseOpen && !c.waiting && !c.blocked
}

func (c *connection) woken(uint32) {
	if c.phase != phaseOpen {
		return
	}
	c.waiting = false // or the session has something to say of its own accord
	if c.blocked {
		return // goes on when that ends
	}
	c.awaitInput()
	c.process(c.in.Unread(), true)
}

func (c *connection) drain(uint32) {
	if c.phase == phaseOpen && !c.waiting && !c.more && !c.blocked {
		c.endFor(conn.ReasonShutdown)
	}
}

const toRead = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI

// edge is how input is to be reported: once, when it comes, and not for as long as it is there, which would be work
// for the kernel in each wait. But a read from a unix socket may get less than is there.
func (c *connection) edge() uint32 {
	if c.peer.Unix {
		return 0
	}
	return unix.EPOLLET
}

// listen asks the poller for what the connection waits for.
func (c *connection) listen() {
	var interest uint32
	switch {
	case c.waiting && c.interest == toRead|unix.EPOLLET && !c.toTheEnd && c.out.Len() == 0:
		return // what comes meanwhile is reported once, which costs less than two changes
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

func (c *connection) closeFor(r conn.Reason) {
	c.Because(r)
	c.close()
}

// close ends the connection at once.
func (c *connection) close() {
	if c.phase != phaseClosed {
		c.phase = phaseClosed
		c.in.Release(&c.loop.host.Pool)
		c.out.Clear(&c.loop.host.Pool)
		c.loop.host.CloseSession(c.session, c.peer)
		c.loop.host.Ended(c.session, c.peer, &c.Life, c.traffic)
		c.loop.forget(c)
	}
}

package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"cellserver/internal/wire/peer"
)

// goroutineConn belongs to its goroutine, but for the fields that say otherwise.
type goroutineConn struct {
	driver  *goroutines
	nc      net.Conn
	secured *secured  // nil without TLS
	source  io.Reader // nc, or TLS over it
	peer    peer.Peer
	session peer.Session // nil until the client is admitted
	in      input
	inErr   error   // why no more can be read; input read before is still executed
	out     *output // to nc
	// what the session was last told about the input buffer
	reportedInput, reportedFree int

	received atomic.Uint64 // bytes
	woken    chan struct{} // holds one wake-up
	killed   chan struct{}
	killOnce sync.Once
	evicted  atomic.Bool
	reset    bool // the client takes no more replies

	mu          sync.Mutex // guards all below
	life                   // openedNs and reason belong to the goroutine
	readsFor    readPurpose
	poked       bool // Wake set the read deadline
	hasDeadline bool
}

// readPurpose is why a connection is read from; it decides the read deadline.
type readPurpose uint8

const (
	readForInput  readPurpose = iota
	readForHangup             // the session is Waiting, so the client may be silent
	readToLinger              // until the client closes, or lingerTimeout
)

// replies is a reply buffer. Connections share a few, as most are idle.
type replies struct{ buf []byte }

func newGoroutineConn(g *goroutines, nc net.Conn, p peer.Peer) *goroutineConn {
	return &goroutineConn{
		driver: g,
		nc:     nc,
		source: nc,
		peer:   p,
		out:    newOutput(nc, &g.server.pool),
		woken:  make(chan struct{}, 1),
		killed: make(chan struct{}),
		life:   life{openedNs: g.server.config.Now()},
	}
}

// Wake implements peer.Conn.
func (c *goroutineConn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default: // one wake-up is pending already
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.poked = true
	c.interruptReadLocked()
}

// wasWoken reports whether to feed the session without input.
func (c *goroutineConn) wasWoken() bool { return ready(c.woken) }

// Kill implements peer.Conn.
func (c *goroutineConn) Kill() {
	c.killOnce.Do(func() {
		close(c.killed)
		_ = c.nc.Close()
	})
}

// Evict implements peer.Conn.
func (c *goroutineConn) Evict() {
	first := !c.evicted.Swap(true)
	c.Kill()
	if first { // only after Kill: a waiting connection checks isKilled
		c.driver.evictions.add(1)
	}
}

func (c *goroutineConn) isKilled() bool { return ready(c.killed) }

// ready reports whether a channel is closed or had a value, which it takes.
func ready(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (c *goroutineConn) run() {
	defer c.driver.remove(c)
	defer func() { c.driver.server.closeSession(c.session, c.peer) }()
	defer c.out.wait()
	defer c.Kill()
	defer func() {
		if p := recover(); p != nil {
			c.because(ReasonPanic)
			c.driver.server.panicked(p, c.peer)
		}
		if c.isKilled() {
			c.because(c.killReason())
		}
	}()
	if c.secured != nil && !c.handshake() {
		c.finish()
		return
	}
	c.session = c.driver.server.config.NewSession(c.peer, c)
	c.out.reportTo(c.session.HoldsOutput)
	for alive := true; alive; {
		alive = c.read() && c.process()
	}
}

// killReason returns why the connection ends if it is killed now.
func (c *goroutineConn) killReason() Reason {
	switch {
	case c.evicted.Load():
		return ReasonMemory
	case c.driver.isDraining():
		return ReasonShutdown
	}
	return ReasonKilled
}

func (c *goroutineConn) nowNs() int64 { return c.driver.server.config.Now() }

func (c *goroutineConn) limits() *Limits { return c.driver.server.limits.Load() }

func (c *goroutineConn) authenticated() bool { return c.session != nil && c.session.Authenticated() }

func (c *goroutineConn) traffic() traffic {
	return traffic{received: c.received.Load(), sent: c.out.sent.Load()}
}

// process executes what has been read. It returns false when the connection is to end.
func (c *goroutineConn) process() bool {
	for {
		n, status, sent := c.feed()
		c.in.consumed(n)
		switch {
		case status == peer.Abort:
			c.because(ReasonSession)
			return false
		case !sent:
			return false
		}
		if left := len(c.in.unread()); left > halfSentBytes || c.halfSentNs != 0 {
			c.mu.Lock()
			c.fed(n, left, status, c.nowNs)
			c.mu.Unlock()
		}
		switch status {
		case peer.NeedInput:
			return true
		case peer.More:
			if c.isKilled() {
				return false
			}
		case peer.Waiting:
			if !c.awaitWake() {
				return false
			}
		default:
			c.end(ReasonSession)
			return false
		}
	}
}

// feed feeds the session once and sends its replies.
func (c *goroutineConn) feed() (consumed int, status peer.Status, sent bool) {
	r, _ := c.driver.replies.Get().(*replies)
	if r == nil {
		r = &replies{}
	}
	consumed, out, status := c.session.Feed(c.in.unread(), r.buf[:0])
	var pending int
	var err error
	if len(out) > 0 && !c.reset && status != peer.Abort {
		pending, err = c.write(out)
	}
	if cap(out) <= maxKeptReplies { // before awaitRead: the client may leave replies unread for long
		r.buf = out
		c.driver.replies.Put(r)
	}
	return consumed, status, err == nil && c.awaitRead(pending)
}

// reportInput tells the session how much memory the read buffer takes.
func (c *goroutineConn) reportInput() {
	input, free := len(c.in.unread()), c.in.spare()
	if input != c.reportedInput || free != c.reportedFree {
		c.reportedInput, c.reportedFree = input, free
		c.session.HoldsInput(input, free)
	}
}

// awaitRead waits while the client has left too many bytes of replies unread. It returns false if the
// connection is to end.
func (c *goroutineConn) awaitRead(pending int) bool {
	limits := c.limits()
	switch limits.judgeOutput(pending, c.session.Authenticated()) {
	case outputFits:
	case outputOverruns:
		c.because(ReasonOutput)
		return false
	case outputBlocks:
		if c.out.await(limits.resumeBytes(), limits.OutputTimeout) {
			return true
		}
		if !c.out.broken() && !c.isKilled() {
			c.because(ReasonOutput)
			c.driver.server.logUnread(c.peer, pending)
		}
		return false
	}
	return true
}

func (c *goroutineConn) write(b []byte) (pending int, err error) {
	if c.secured != nil {
		return c.secured.send(b)
	}
	return c.out.send(b)
}

// end sends pending replies and makes sure the client can receive them.
func (c *goroutineConn) end(r Reason) {
	c.because(r)
	switch {
	case r == ReasonOutput: // it would not read them
	case r.Lingers():
		c.finish()
	default:
		c.flush()
	}
}

// finish sends pending replies, closes the sending side, and waits for the client to close.
func (c *goroutineConn) finish() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !c.flush() || !ok || half.CloseWrite() != nil {
		return
	}
	c.mu.Lock()
	c.readsFor = readToLinger
	_ = c.nc.SetReadDeadline(deadlineIn(lingerTimeout))
	c.mu.Unlock()
	for scrap := c.in.scrap(&c.driver.server.pool); ; {
		if _, err := c.nc.Read(scrap); err != nil {
			return
		}
	}
}

// flush waits until all replies are sent and, over TLS, close_notify.
func (c *goroutineConn) flush() bool {
	if c.secured != nil {
		c.secured.closeNotify()
	}
	return c.out.await(0, c.limits().OutputTimeout)
}

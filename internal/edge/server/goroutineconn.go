package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"cellserver/internal/wire/peer"
)

// goroutineConn is a peer.Conn that belongs to its goroutine, but for the fields that say otherwise.
type goroutineConn struct {
	driver  *goroutines
	nc      net.Conn
	secured *secured  // nil without TLS
	source  io.Reader // nc, or TLS over it
	peer    peer.Peer
	session peer.Session // nil until the client is admitted
	in      input
	out     *output // to nc
	// what the session was last told about the input buffer
	reportedInput, reportedFree int

	received atomic.Uint64 // bytes
	woken    chan struct{} // holds one wake-up
	killed   chan struct{}
	killOnce sync.Once
	evicted  atomic.Bool

	mu          sync.Mutex // rank 85: guards all below
	life                   // openedNs, phase, hangup and reason belong to the goroutine
	reads       readPurpose
	hasDeadline bool
}

// readPurpose is why a connection is read from, or was last. It decides the read deadline.
type readPurpose uint8

const (
	readForInput    readPurpose = iota
	readForHangup               // the session is Waiting, so the client may be silent
	readToLinger                // until the client closes, or lingerTimeout
	readInterrupted             // a read ends at once, by Wake or Shutdown
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

func (c *goroutineConn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default: // one wake-up is pending already
	}
	c.interruptRead()
}

// wasWoken reports whether to feed the session without input.
func (c *goroutineConn) wasWoken() bool { return ready(c.woken) }

func (c *goroutineConn) Kill() {
	c.killOnce.Do(func() {
		close(c.killed)
		_ = c.nc.Close()
	})
}

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
	for c.phase != phaseClosed {
		c.live()
	}
}

// live does what the connection's phase is about, until it has moved to another.
func (c *goroutineConn) live() {
	switch c.phase {
	case phaseStarting:
		c.begin()
	case phaseIdle:
		c.read()
	case phaseExecuting:
		c.process()
	case phaseWaiting:
		c.awaitWake()
	case phaseFlushing, phaseFinishing:
		c.flush()
	case phaseLingering:
		c.linger()
	default: // process itself waits while the connection is blocked
	}
}

// begin makes the session, after TLS's handshake.
func (c *goroutineConn) begin() {
	if c.secured != nil && !c.handshake() {
		c.move(onEndGently)
		return
	}
	c.session = c.driver.server.config.NewSession(c.peer, c)
	c.out.reportTo(c.session.HoldsOutput)
	c.move(onAdmitted)
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

// process executes what has been read.
func (c *goroutineConn) process() {
	n, status, pending, err := c.feed()
	c.in.consumed(n)
	switch {
	case status == peer.Abort:
		c.closeFor(ReasonSession)
		return
	case err != nil || !c.awaitReader(pending):
		c.move(onClose)
		return
	}
	if left := len(c.in.unread()); left > halfSentBytes || c.halfSentNs != 0 {
		c.mu.Lock()
		c.fed(n, left, halfSentBytes, status, c.nowNs)
		c.mu.Unlock()
	}
	switch {
	case status == peer.Close:
		c.endFor(ReasonSession)
	case status == peer.More && c.isKilled():
		c.move(onClose)
	default:
		c.move(fedEvent(status))
	}
}

// feed feeds the session once and sends its replies; pending bytes of them are queued.
func (c *goroutineConn) feed() (consumed int, status peer.Status, pending int, err error) {
	r, _ := c.driver.replies.Get().(*replies)
	if r == nil {
		r = &replies{}
	}
	consumed, out, status := c.session.Feed(c.in.unread(), r.buf[:0])
	if len(out) > 0 && c.hangup != peer.Reset && status != peer.Abort {
		pending, err = c.write(out)
	}
	if cap(out) <= maxKeptReplies {
		r.buf = out
		c.driver.replies.Put(r)
	}
	return consumed, status, pending, err
}

// reportInput tells the session how much memory the read buffer takes.
func (c *goroutineConn) reportInput() {
	input, free := len(c.in.unread()), c.in.spare()
	if input != c.reportedInput || free != c.reportedFree {
		c.reportedInput, c.reportedFree = input, free
		c.session.HoldsInput(input, free)
	}
}

// awaitReader waits while the client has left too many bytes of replies unread. It returns false if the
// connection is to end.
func (c *goroutineConn) awaitReader(pending int) bool {
	limits := c.limits()
	switch limits.judgeOutput(pending, c.session.Authenticated()) {
	case outputFits:
	case outputOverruns:
		c.because(ReasonOutput)
		return false
	case outputBlocks:
		c.move(onBlocked)
		if c.out.await(limits.resumeBytes(), limits.OutputTimeout) {
			c.move(onResumed)
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

// closeFor closes the connection at once.
func (c *goroutineConn) closeFor(r Reason) {
	c.because(r)
	c.move(onClose)
}

// endFor sends pending replies and closes the connection.
func (c *goroutineConn) endFor(r Reason) {
	if r == ReasonOutput { // it would not read them
		c.closeFor(r)
		return
	}
	c.because(r)
	c.move(endEvent(r))
}

// flush waits until all replies are sent and, over TLS, close_notify. To linger it closes the sending side.
func (c *goroutineConn) flush() {
	if c.secured != nil {
		c.secured.closeNotify()
	}
	if !c.out.await(0, c.limits().OutputTimeout) || c.phase == phaseFinishing && !c.closeWrite() {
		c.move(onClose)
		return
	}
	c.move(onFlushed)
}

func (c *goroutineConn) closeWrite() (ok bool) {
	half, ok := c.nc.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// linger waits for the client to close.
func (c *goroutineConn) linger() {
	c.mu.Lock()
	c.reads = readToLinger
	_ = c.nc.SetReadDeadline(deadlineIn(lingerTimeout))
	c.mu.Unlock()
	scrap := c.in.scrap(&c.driver.server.pool)
	for err := error(nil); err == nil; {
		_, err = c.nc.Read(scrap)
	}
	c.move(onClose)
}

package goroutines

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// connection belongs to its goroutine, but for the fields that say otherwise.
type connection struct {
	driver  *Driver
	nc      net.Conn
	secured *secured  // nil without TLS
	source  io.Reader // nc, or TLS over it
	peer    peer.Peer
	session peer.Session // nil until the client is admitted
	in      conn.Input
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

	mu          sync.Mutex // rank 85: guards all below
	conn.Life              // OpenedNs and reason belong to the goroutine
	readsFor    readPurpose
	poked       bool // Wake set the read deadline
	hasDeadline bool
}

// readPurpose is why a connection is read from; it decides the read deadline.
type readPurpose uint8

const (
	readForInput  readPurpose = iota
	readForHangup             // the session is Waiting, so the client may be silent
	readToLinger              // until the client closes, or LingerTimeout
)

// replies is a reply buffer. Connections share a few, as most are idle.
type replies struct{ buf []byte }

func newConnection(g *Driver, nc net.Conn, p peer.Peer) *connection {
	return &connection{
		driver: g,
		nc:     nc,
		source: nc,
		peer:   p,
		out:    newOutput(nc, &g.host.Pool),
		woken:  make(chan struct{}, 1),
		killed: make(chan struct{}),
		Life:   conn.Life{OpenedNs: g.host.Now()},
	}
}

// Wake implements peer.Conn.
func (c *connection) Wake() {
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
func (c *connection) wasWoken() bool { return ready(c.woken) }

// Kill implements peer.Conn.
func (c *connection) Kill() {
	c.killOnce.Do(func() {
		close(c.killed)
		_ = c.nc.Close()
	})
}

// Evict implements peer.Conn.
func (c *connection) Evict() {
	first := !c.evicted.Swap(true)
	c.Kill()
	if first { // only after Kill: a waiting connection checks isKilled
		c.driver.evictions.add(1)
	}
}

func (c *connection) isKilled() bool { return ready(c.killed) }

// ready reports whether a channel is closed or had a value, which it takes.
func ready(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (c *connection) run() {
	defer c.driver.remove(c)
	defer func() { c.driver.host.CloseSession(c.session, c.peer) }()
	defer c.out.wait()
	defer c.Kill()
	defer func() {
		if p := recover(); p != nil {
			c.Because(conn.ReasonPanic)
			c.driver.host.Panicked(p, c.peer)
		}
		if c.isKilled() {
			c.Because(c.killReason())
		}
	}()
	if c.secured != nil && !c.handshake() {
		c.finish()
		return
	}
	c.session = c.driver.host.NewSession(c.peer, c)
	c.out.reportTo(c.session.HoldsOutput)
	for alive := true; alive; {
		alive = c.read() && c.process()
	}
}

// killReason returns why the connection ends if it is killed now.
func (c *connection) killReason() conn.Reason {
	switch {
	case c.evicted.Load():
		return conn.ReasonMemory
	case c.driver.isDraining():
		return conn.ReasonShutdown
	}
	return conn.ReasonKilled
}

func (c *connection) nowNs() int64 { return c.driver.host.Now() }

func (c *connection) limits() *conn.Limits { return c.driver.host.Limits() }

func (c *connection) authenticated() bool { return c.session != nil && c.session.Authenticated() }

func (c *connection) traffic() conn.Traffic {
	return conn.Traffic{Received: c.received.Load(), Sent: c.out.sent.Load()}
}

// process executes what has been read. It returns false when the connection is to end.
func (c *connection) process() bool {
	for {
		n, status, sent := c.feed()
		c.in.Consumed(n)
		switch {
		case status == peer.Abort:
			c.Because(conn.ReasonSession)
			return false
		case !sent:
			return false
		}
		if left := len(c.in.Unread()); left > conn.HalfSentBytes || c.HalfSentNs != 0 {
			c.mu.Lock()
			c.Fed(n, left, status, c.nowNs)
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
			c.end(conn.ReasonSession)
			return false
		}
	}
}

// feed feeds the session once and sends its replies.
func (c *connection) feed() (consumed int, status peer.Status, sent bool) {
	r, _ := c.driver.replies.Get().(*replies)
	if r == nil {
		r = &replies{}
	}
	consumed, out, status := c.session.Feed(c.in.Unread(), r.buf[:0])
	var pending int
	var err error
	if len(out) > 0 && !c.reset && status != peer.Abort {
		pending, err = c.write(out)
	}
	if cap(out) <= conn.MaxKeptReplies { // before awaitRead: the client may leave replies unread for long
		r.buf = out
		c.driver.replies.Put(r)
	}
	return consumed, status, err == nil && c.awaitRead(pending)
}

// reportInput tells the session how much memory the read buffer takes.
func (c *connection) reportInput() {
	input, free := len(c.in.Unread()), c.in.Spare()
	if input != c.reportedInput || free != c.reportedFree {
		c.reportedInput, c.reportedFree = input, free
		c.session.HoldsInput(input, free)
	}
}

// awaitRead waits while the client has left too many bytes of replies unread. It returns false if the
// connection is to end.
func (c *connection) awaitRead(pending int) bool {
	limits := c.limits()
	switch limits.JudgeOutput(pending, c.session.Authenticated()) {
	case conn.OutputFits:
	case conn.OutputOverruns:
		c.Because(conn.ReasonOutput)
		return false
	case conn.OutputBlocks:
		if c.out.await(limits.ResumeBytes(), limits.OutputTimeout) {
			return true
		}
		if !c.out.broken() && !c.isKilled() {
			c.Because(conn.ReasonOutput)
			c.driver.host.LogUnread(c.peer, pending)
		}
		return false
	}
	return true
}

func (c *connection) write(b []byte) (pending int, err error) {
	if c.secured != nil {
		return c.secured.send(b)
	}
	return c.out.send(b)
}

// end sends pending replies and makes sure the client can receive them.
func (c *connection) end(r conn.Reason) {
	c.Because(r)
	switch {
	case r == conn.ReasonOutput: // it would not read them
	case r.Lingers():
		c.finish()
	default:
		c.flush()
	}
}

// finish sends pending replies, closes the sending side, and waits for the client to close.
func (c *connection) finish() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !c.flush() || !ok || half.CloseWrite() != nil {
		return
	}
	c.mu.Lock()
	c.readsFor = readToLinger
	_ = c.nc.SetReadDeadline(conn.DeadlineIn(conn.LingerTimeout))
	c.mu.Unlock()
	for scrap := c.in.Scrap(&c.driver.host.Pool); ; {
		if _, err := c.nc.Read(scrap); err != nil {
			return
		}
	}
}

// flush waits until all replies are sent and, over TLS, close_notify.
func (c *connection) flush() bool {
	if c.secured != nil {
		c.secured.closeNotify()
	}
	return c.out.await(0, c.limits().OutputTimeout)
}

package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/peer"
)

// conn is one connection of the goroutines driver. All but Wake, Kill and inputDueNs belongs to its own goroutine.
type conn struct {
	driver   *goroutines
	nc       net.Conn
	secured  *secured  // nil without TLS
	source   io.Reader // what is read from: nc, or TLS over it
	peer     peer.Peer
	session  peer.Session // nil until the client is admitted
	openedNs int64
	in       input
	out      *output // to nc
	replies  []byte  // reused

	received    atomic.Uint64 // bytes
	why         end
	hasDeadline bool          // a read deadline was set by the connection itself
	greeted     atomic.Bool   // the client was authenticated once
	watches     atomic.Bool   // the session does
	poked       atomic.Bool   // the read deadline is Wake's; set under driver.mu
	lingering   bool          // the read deadline is finish's; guarded by driver.mu
	woken       chan struct{} // holds one wake-up
	killed      chan struct{}
	killOnce    sync.Once
}

const (
	// lingerTimeout is how long a closed connection's input is still read and thrown away. Closing with unread
	// input would reset the connection, and the client could lose the last replies.
	lingerTimeout = time.Second

	maxKeptReplies = 64 << 10 // a larger reply buffer is not kept
)

func newConn(g *goroutines, nc net.Conn, p peer.Peer) *conn {
	return &conn{
		driver:   g,
		nc:       nc,
		source:   nc,
		peer:     p,
		openedNs: g.server.config.Now(),
		out:      newOutput(nc),
		woken:    make(chan struct{}, 1),
		killed:   make(chan struct{}),
	}
}

// peerOf names a connection's ends. Those of a unix socket are its path, as in Redis.
func peerOf(nc net.Conn) peer.Peer {
	local := nc.LocalAddr()
	if local.Network() == "unix" {
		return peer.Peer{Addr: local.String() + ":0", LocalAddr: local.String() + ":0", Unix: true}
	}
	return peer.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: local.String()}
}

// Wake implements peer.Conn.
func (c *conn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default: // it will look in any case
	}
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	if !c.lingering {
		c.poked.Store(true)
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // ends a Read that waits
	}
}

// wasWoken reports whether the session is to be fed without input.
func (c *conn) wasWoken() bool {
	select {
	case <-c.woken:
		return true
	default:
		return false
	}
}

// unpoke takes back the read deadline that Wake has set.
func (c *conn) unpoke() {
	if !c.poked.Load() {
		return // a Wake that has not come so far has left word in woken
	}
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	c.poked.Store(false)
	if !c.driver.isDraining() {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
}

// Kill implements peer.Conn.
func (c *conn) Kill() {
	c.killOnce.Do(func() {
		close(c.killed)
		_ = c.nc.Close()
	})
}

func (c *conn) isKilled() bool {
	select {
	case <-c.killed:
		return true
	default:
		return false
	}
}

func (c *conn) run() {
	defer c.driver.remove(c)
	defer func() { c.driver.server.closeSession(c.session, c.peer) }()
	defer c.out.wait()
	defer c.Kill()
	defer func() {
		if p := recover(); p != nil {
			c.because(endPanic)
			c.driver.server.panicked(p, c.peer)
		}
		if c.isKilled() {
			c.because(endKilled)
		}
	}()
	if c.secured != nil && !c.handshake() {
		c.finish()
		return
	}
	c.session = c.driver.server.config.NewSession(c.peer, c)
	for alive := true; alive; {
		alive = c.read() && c.process()
	}
}

func (c *conn) nowNs() int64 { return c.driver.server.config.Now() }

func (c *conn) limits() *Limits { return c.driver.server.limits.Load() }

func (c *conn) authenticated() bool { return c.session != nil && c.session.Authenticated() }

// read waits for input. It is false when there will be no more.
func (c *conn) read() bool {
	c.unpoke()
	if !c.setReadDeadline() {
		c.because(endShutdown)
		c.finish()
		return false
	}
	if c.wasWoken() {
		return true
	}
	n, err := c.source.Read(c.in.free())
	c.in.filled(n)
	if c.secured == nil {
		c.received.Add(uint64(n))
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.poked.Load() && !c.driver.isDraining() {
		return true
	}
	if err != nil && n == 0 {
		c.because(c.whyUnread(err))
		if c.driver.isDraining() {
			c.finish()
		} else {
			c.flush()
		}
		return false
	}
	return true
}

// whyUnread tells why a read has failed.
func (c *conn) whyUnread(err error) end {
	switch {
	case errors.Is(err, errUnread):
		return endOutput
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return endClient
	case c.driver.isDraining():
		return endShutdown
	case !c.greeted.Load() && c.limits().HandshakeTimeout > 0 && c.nowNs()-c.openedNs >= int64(c.limits().HandshakeTimeout):
		return endHandshake
	}
	return endIdle
}

// because notes why the connection ends; the first reason counts.
func (c *conn) because(why end) {
	if c.why != endClient {
		return
	}
	if c.why = why; why == endKilled && c.driver.isDraining() {
		c.why = endShutdown
	}
}

func (c *conn) traffic() traffic { return traffic{c.received.Load(), c.out.sent.Load()} }

// setReadDeadline is false if the driver is draining. It looks after it has set the deadline, for the driver sets
// its own, which must not be overwritten unseen; and so it does for limits that have changed.
func (c *conn) setReadDeadline() bool {
	if !c.greeted.Load() && c.authenticated() {
		c.greeted.Store(true)
	}
	if watches := c.session != nil && c.session.Monitors(); watches != c.watches.Load() {
		c.watches.Store(watches)
	}
	for done := false; !done; {
		limits := c.limits()
		if dueNs := c.inputDueNs(limits); c.hasDeadline || dueNs != 0 {
			c.setDue(dueNs)
			c.hasDeadline = dueNs != 0
		}
		done = c.limits() == limits
	}
	return !c.driver.isDraining()
}

// setDue sets the read deadline; 0 for none.
func (c *conn) setDue(dueNs int64) {
	var deadline time.Time
	if dueNs != 0 {
		deadline = deadlineIn(time.Duration(dueNs - c.nowNs()))
	}
	_ = c.nc.SetReadDeadline(deadline)
}

// inputDueNs is until when a client that is waited for from now on must have sent something; 0 for ever.
func (c *conn) inputDueNs(limits *Limits) (dueNs int64) {
	if limits.IdleTimeout > 0 && !c.watches.Load() {
		dueNs = c.nowNs() + int64(limits.IdleTimeout)
	}
	if handshakeNs := c.openedNs + int64(limits.HandshakeTimeout); limits.HandshakeTimeout > 0 && !c.greeted.Load() && (dueNs == 0 || handshakeNs < dueNs) {
		dueNs = handshakeNs
	}
	return dueNs
}

// process executes what has been read. It is false when the connection is to end.
func (c *conn) process() bool {
	for {
		n, replies, status := c.session.Feed(c.in.unread(), c.replies[:0])
		c.in.consumed(n)
		if status == peer.Abort {
			c.because(endSession)
			return false
		}
		if !c.send(replies) {
			return false
		}
		switch status {
		case peer.NeedInput:
			return true
		case peer.More:
			if c.isKilled() {
				return false
			}
		case peer.Waiting:
			select {
			case <-c.woken:
			case <-c.killed:
				return false
			}
		default:
			c.because(endSession)
			c.finish()
			return false
		}
	}
}

// send sends replies, and waits where the client has left too many unread. It is false if that has no end.
func (c *conn) send(replies []byte) bool {
	c.replies = replies
	if cap(replies) > maxKeptReplies {
		c.replies = nil
	}
	if len(replies) == 0 {
		return true
	}
	pending, err := c.write(replies)
	switch limits := c.limits(); {
	case err != nil:
		return false
	case !c.session.Authenticated():
		if pending <= peer.UnauthenticatedOutput {
			return true
		}
		c.because(endOutput)
		return false
	case pending > limits.MaxOutputBytes:
		if c.out.await(limits.MaxOutputBytes/2, limits.OutputTimeout) {
			return true
		}
		if !c.out.broken() && !c.isKilled() {
			c.because(endOutput)
			c.driver.server.tellUnread(c.peer, pending)
		}
		return false
	}
	return true
}

func (c *conn) write(b []byte) (pending int, err error) {
	if c.secured != nil {
		return c.secured.send(b)
	}
	return c.out.send(b)
}

// finish sends what is pending, tells the client that nothing more comes, and waits until it has seen that.
func (c *conn) finish() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !c.flush() || !ok || half.CloseWrite() != nil {
		return
	}
	c.driver.mu.Lock()
	c.lingering = true
	_ = c.nc.SetReadDeadline(deadlineIn(lingerTimeout))
	c.driver.mu.Unlock()
	for scrap := c.in.scrap(); ; {
		if _, err := c.nc.Read(scrap); err != nil {
			return
		}
	}
}

// flush waits until all replies are sent, and over TLS the word that these were all.
func (c *conn) flush() bool {
	if c.secured != nil {
		c.secured.end()
	}
	return c.out.await(0, c.limits().OutputTimeout)
}

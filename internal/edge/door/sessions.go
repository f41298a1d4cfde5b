package door

import (
	"sync"
	"sync/atomic"

	"cellserver/internal/edge/server"
)

// client is a session of a connection. It implements peer.Conn.
type client struct {
	conn    *Conn
	session Session
	woken   chan struct{}
}

// take returns a session for a request, or nil once the connection is closed.
func (c *Conn) take() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if n := len(c.idle); n > 0 {
		s := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return s
	}
	return c.newClientLocked()
}

func (c *Conn) newClientLocked() *client {
	s := &client{conn: c, woken: make(chan struct{}, 1)}
	s.session = c.door.NewSession(*c.peer, s)
	if c.main == nil {
		c.main = s
	}
	return s
}

// putBack keeps a session for further requests, or closes it.
func (c *Conn) putBack(s *client, reusable bool) {
	c.mu.Lock()
	keep := reusable && !c.closed && (len(c.idle) < maxIdle || s == c.main)
	if keep {
		c.idle = append(c.idle, s)
	} else if s == c.main {
		c.main = nil
	}
	c.mu.Unlock()
	if keep {
		return
	}
	s.session.Close()
	c.report()
}

func (s *client) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *client) Kill() { s.conn.end(server.ReasonKilled) }

func (s *client) Evict() { s.conn.end(server.ReasonMemory) }

// end ends the connection at once.
func (c *Conn) end(reason server.Reason) {
	c.reason.CompareAndSwap(int32(server.ReasonClient), int32(reason))
	go func() { // as the caller may hold a lock that sessions need
		_ = c.wire.Close() // else TLS would wait for the client to read that it ends
		_ = c.Close()
	}()
}

// holding is what a connection holds: buffers, streams and parts of bodies.
type holding struct {
	bytes    atomic.Int64
	request  atomic.Int64 // of bytes, those of a request of HTTP/1
	reported atomic.Int64

	mu sync.Mutex // rank 15: held while it is reported
}

const (
	// connBytes is what net/http holds for an idle connection beside its session; it was measured.
	connBytes = 16 << 10
	// reportBytes is the change from which it is reported, so that short requests are not.
	reportBytes = 16 << 10
)

// hold adds to what the connection holds, as memory of its client.
func (c *Conn) hold(change int) {
	if change == 0 {
		return
	}
	h := &c.holding
	if more := h.bytes.Add(int64(change)) - h.reported.Load(); more >= reportBytes || more <= -reportBytes {
		c.report()
	}
}

// endRequest ends what the connection holds of a request of HTTP/1.
func (c *Conn) endRequest() { c.hold(-int(c.holding.request.Swap(0))) }

// report tells the connection's first session what is held.
func (c *Conn) report() {
	h := &c.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	if c.main == nil && c.peer != nil && !c.closed {
		c.idle = append(c.idle, c.newClientLocked())
	}
	main := c.main
	c.mu.Unlock()
	if main != nil {
		bytes := h.bytes.Load()
		h.reported.Store(bytes)
		main.session.HoldsInput(int(bytes), 0)
	}
}

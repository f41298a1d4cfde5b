// Package goroutines drives connections with a goroutine each, on all systems, and over TLS. A Driver is safe
// for concurrent use.
package goroutines

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// Driver is the driver that gives each connection a goroutine.
type Driver struct {
	host     *conn.Host
	draining chan struct{} // closed when Shutdown begins

	mu    sync.Mutex // guards conns, whether more may be added to them, and past; taken before a connection's
	conns map[*connection]struct{}
	past  conn.Traffic // of connections that have ended
	wg    sync.WaitGroup

	evictions evictions
	replies   sync.Pool // of *replies
}

// New returns a driver without connections.
func New(h *conn.Host) *Driver {
	g := &Driver{host: h, draining: make(chan struct{}), conns: map[*connection]struct{}{}}
	g.evictions.ended.L = &g.evictions.mu
	return g
}

// Serve takes over a connection without TLS.
func (g *Driver) Serve(nc net.Conn, p peer.Peer) { g.start(newConnection(g, nc, p)) }

// ServeTLS is serve for a connection that TLS has yet to be agreed on.
func (g *Driver) ServeTLS(nc net.Conn, p peer.Peer, config *tls.Config) {
	c := newConnection(g, nc, p)
	c.secure(config)
	g.start(c)
}

func (g *Driver) start(c *connection) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		_ = c.nc.Close()
		if c.secured == nil {
			c.Because(conn.ReasonShutdown)
			g.host.Ended(nil, c.peer, &c.Life, conn.Traffic{})
		}
		g.host.Release(c.peer)
		return
	}
	g.conns[c] = struct{}{}
	g.wg.Go(c.run)
}

func (g *Driver) isDraining() bool { return ready(g.draining) }

// killReason is why a connection ends that is killed now.
func (g *Driver) killReason() conn.Reason {
	if g.isDraining() {
		return conn.ReasonShutdown
	}
	return conn.ReasonKilled
}

func (g *Driver) remove(c *connection) {
	c.in.Release(&g.host.Pool)
	if c.evicted.Swap(true) { // from now on nobody waits for it
		g.evictions.add(-1)
	}
	g.mu.Lock()
	delete(g.conns, c)
	g.past.Add(c.traffic())
	g.mu.Unlock()
	if c.session != nil {
		g.host.Ended(c.session, c.peer, &c.Life, c.traffic())
	}
	g.host.Release(c.peer)
}

// LimitsChanged has the connections that wait for input follow new timeouts.
func (g *Driver) LimitsChanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		return // deadlines are what ends the connections now
	}
	for c := range g.conns {
		c.limitsChanged()
	}
}

// Traffic counts the bytes of all connections that there were.
func (g *Driver) Traffic() conn.Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := g.past
	for c := range g.conns {
		sum.Add(c.traffic())
	}
	return sum
}

// Shutdown ends all connections, as conn.Driver says.
func (g *Driver) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if !g.isDraining() {
		close(g.draining)
	}
	for c := range g.conns {
		c.interruptRead()
	}
	g.mu.Unlock()

	if conn.WaitOrDone(ctx, &g.wg) {
		return nil
	}
	g.mu.Lock()
	for c := range g.conns {
		c.Kill()
	}
	g.mu.Unlock()
	if conn.WaitAtLast(&g.wg) {
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return conn.LeftBehind(ctx, fmt.Sprintf("connections outside the event loops: %d", len(g.conns)))
}

// Probe has nothing to wait for: the connections share no more than the list of them.
func (g *Driver) Probe(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ctx.Err()
}

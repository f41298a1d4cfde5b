// Package goroutines serves each connection from a goroutine of its own, on all systems and over TLS. A
// Driver is safe for concurrent use.
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

// Driver serves each connection from a goroutine.
type Driver struct {
	host     *conn.Host
	draining chan struct{} // closed when Shutdown begins

	mu    sync.Mutex // rank 60: guards conns, past and additions to wg; taken before a connection's
	conns map[*connection]struct{}
	past  conn.Traffic // of ended connections
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

// Serve implements conn.Driver.
func (g *Driver) Serve(nc net.Conn, p peer.Peer) { g.start(newConnection(g, nc, p)) }

// ServeTLS serves a connection that begins with a TLS handshake.
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

func (g *Driver) remove(c *connection) {
	c.in.Release(&g.host.Pool)
	if c.evicted.Swap(true) { // no connection waits for it from now on
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

// LimitsChanged implements conn.Driver.
func (g *Driver) LimitsChanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		return // expired deadlines end the connections now
	}
	for c := range g.conns {
		c.limitsChanged()
	}
}

// Traffic implements conn.Driver.
func (g *Driver) Traffic() conn.Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := g.past
	for c := range g.conns {
		sum.Add(c.traffic())
	}
	return sum
}

// Shutdown implements conn.Driver.
func (g *Driver) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if !g.isDraining() {
		close(g.draining)
	}
	for c := range g.conns {
		c.interruptRead()
	}
	g.mu.Unlock()
	return conn.Await(ctx, &g.wg, g.killAll, func() string {
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Sprintf("connections outside the event loops: %d", len(g.conns))
	})
}

func (g *Driver) killAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.Kill()
	}
}

// Probe has no loop to wait for: connections share only the list of them.
func (g *Driver) Probe(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ctx.Err()
}

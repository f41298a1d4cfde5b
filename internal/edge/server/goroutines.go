package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"cellserver/internal/wire/peer"
)

// goroutines is the driver that serves each connection from a goroutine of its own, on all systems and over
// TLS. It is safe for concurrent use.
type goroutines struct {
	server   *Server
	draining chan struct{} // closed when Shutdown begins

	mu    sync.Mutex // rank 60: guards conns, past and additions to wg
	conns map[*goroutineConn]struct{}
	past  traffic // of ended connections
	wg    sync.WaitGroup

	evictions evictions
	replies   sync.Pool // of *replies
}

func newGoroutines(s *Server) *goroutines {
	g := &goroutines{server: s, draining: make(chan struct{}), conns: map[*goroutineConn]struct{}{}}
	g.evictions.ended.L = &g.evictions.mu
	return g
}

func (g *goroutines) serve(nc net.Conn, p peer.Peer) { g.start(newGoroutineConn(g, nc, p)) }

// serveGuest leaves it to the door, which has a goroutine for it, too.
func (g *goroutines) serveGuest(net.Conn, *Guest, *GuestServer) bool { return false }

// serveTLS serves a connection that begins with a TLS handshake.
func (g *goroutines) serveTLS(nc net.Conn, p peer.Peer, config *tls.Config) {
	c := newGoroutineConn(g, nc, p)
	c.secure(config)
	g.start(c)
}

func (g *goroutines) start(c *goroutineConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		_ = c.nc.Close()
		if c.secured == nil {
			g.server.left(c.peer, c.openedNs, ReasonShutdown, traffic{})
		} else { // nobody has accepted it
			g.server.release(c.peer)
		}
		return
	}
	g.conns[c] = struct{}{}
	g.wg.Go(c.run)
}

func (g *goroutines) isDraining() bool { return ready(g.draining) }

func (g *goroutines) remove(c *goroutineConn) {
	c.in.release(&g.server.pool)
	if c.evicted.Swap(true) { // no connection waits for it from now on
		g.evictions.add(-1)
	}
	g.mu.Lock()
	delete(g.conns, c)
	g.past.add(c.traffic())
	g.mu.Unlock()
	if c.session != nil {
		g.server.ended(c.session, c.peer, &c.life, c.traffic())
	}
	g.server.release(c.peer)
}

func (g *goroutines) limitsChanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		return // expired deadlines end the connections now
	}
	for c := range g.conns {
		c.limitsChanged()
	}
}

func (g *goroutines) traffic() traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := g.past
	for c := range g.conns {
		sum.add(c.traffic())
	}
	return sum
}

func (g *goroutines) shutdown(ctx context.Context) error {
	g.mu.Lock()
	if !g.isDraining() {
		close(g.draining)
	}
	for c := range g.conns {
		c.interruptRead()
	}
	g.mu.Unlock()
	return await(ctx, &g.wg, g.killAll, func() string {
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Sprintf("connections outside the event loops: %d", len(g.conns))
	})
}

func (g *goroutines) killAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.Kill()
	}
}

// probe has no loop to wait for: connections share only the list of them.
func (g *goroutines) probe(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ctx.Err()
}

// evictions makes growing connections wait until evicted ones have ended: an evicted one no longer counts but
// holds its memory until its goroutine runs, which many growing connections would put off.
type evictions struct {
	open atomic.Int32 // evicted connections that have not ended

	mu    sync.Mutex // rank 85: taken to wait, and to change open
	ended sync.Cond  // on mu
}

func (e *evictions) add(n int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open.Add(n)
	e.ended.Broadcast()
}

// await waits until none is open, or c itself is killed.
func (e *evictions) await(c *goroutineConn) {
	if e.open.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.open.Load() > 0 && !c.isKilled() {
		e.ended.Wait()
	}
}

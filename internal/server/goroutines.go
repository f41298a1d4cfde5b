package server

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"cellserver/internal/peer"
)

// goroutines is the driver that gives each connection a goroutine.
type goroutines struct {
	server   *Server
	draining chan struct{} // closed when Shutdown begins

	mu    sync.Mutex // guards conns, whether more may be added to them, their lingering, and past
	conns map[*conn]struct{}
	past  traffic // of connections that have ended
	wg    sync.WaitGroup
}

func newGoroutines(s *Server) *goroutines {
	return &goroutines{server: s, draining: make(chan struct{}), conns: map[*conn]struct{}{}}
}

func (g *goroutines) serve(nc net.Conn, p peer.Peer) { g.start(newConn(g, nc, p)) }

// serveTLS is serve for a connection that TLS has yet to be agreed on.
func (g *goroutines) serveTLS(nc net.Conn, p peer.Peer, config *tls.Config) {
	c := newConn(g, nc, p)
	c.secure(config)
	g.start(c)
}

func (g *goroutines) start(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		_ = c.nc.Close()
		if c.secured == nil {
			g.server.left(nil, c.peer, endShutdown, traffic{}, 0)
		}
		g.server.ended()
		return
	}
	g.conns[c] = struct{}{}
	g.wg.Go(c.run)
}

func (g *goroutines) isDraining() bool {
	select {
	case <-g.draining:
		return true
	default:
		return false
	}
}

func (g *goroutines) remove(c *conn) {
	g.mu.Lock()
	delete(g.conns, c)
	g.past.add(c.traffic())
	g.mu.Unlock()
	if c.session != nil {
		g.server.left(c.session, c.peer, c.why, c.traffic(), time.Duration(c.nowNs()-c.openedNs))
	}
	g.server.ended()
}

func (g *goroutines) limitsChanged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isDraining() {
		return // deadlines are what ends the connections now
	}
	limits := g.server.limits.Load()
	for c := range g.conns {
		if !c.lingering && !c.poked.Load() { // one that is poked will set its own
			c.setDue(c.inputDueNs(limits))
		}
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
		if !c.lingering {
			_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // ends a Read that waits
		}
	}
	g.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		g.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	for c := range g.conns {
		c.Kill()
	}
	g.mu.Unlock()
	<-ended
	return ctx.Err()
}

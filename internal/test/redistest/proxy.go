package redistest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/test/processtest"
)

// Proxy forwards TCP connections to a server, slowly or brokenly on demand. It is safe for concurrent use.
type Proxy struct {
	Addr string

	target   string
	listener net.Listener
	delayNs  atomic.Int64
	lateNs   atomic.Int64 // of every second reply
	replies  atomic.Int64
	ctx      context.Context // until Close
	cancel   context.CancelFunc

	mu      sync.Mutex
	links   map[net.Conn]struct{} // guarded by mu: both sides of each connection
	refused bool                  // guarded by mu
	flowing chan struct{}         // guarded by mu: closed while bytes flow
}

func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := openProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func openProxy(target string) (*Proxy, error) {
	l, err := processtest.Listen()
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, links: map[net.Conn]struct{}{}, flowing: make(chan struct{})}
	close(p.flowing)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.accept()
	return p, nil
}

// Delay delays both directions by d.
func (p *Proxy) Delay(d time.Duration) { p.delayNs.Store(int64(d)) }

// LateByTurns delays every second reply by d; its request has already been executed.
func (p *Proxy) LateByTurns(d time.Duration) { p.lateNs.Store(int64(d)) }

// Cut closes all connections, old and new, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
	p.closeLinksLocked()
}

// BlackHole stops forwarding until Heal, and keeps connections open: no FIN or RST reveals it.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // already stopped
	}
}

// Heal ends Delay, LateByTurns, Cut and BlackHole, and forwards what a black hole has collected.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delayNs.Store(0)
	p.lateNs.Store(0)
	p.refused = false
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
	p.closeLinksLocked()
}

func (p *Proxy) closeLinksLocked() {
	for c := range p.links {
		_ = c.Close()
	}
	clear(p.links)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.keep(client) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		p.forget(client)
		return
	}
	if !p.keep(server) {
		_ = server.Close()
		return
	}
	var directions sync.WaitGroup
	for _, d := range []struct {
		from, to net.Conn
		delay    func() time.Duration
	}{{client, server, p.delay}, {server, client, p.replyDelay}} {
		directions.Go(func() {
			p.pass(d.from, d.to, d.delay)
			p.forget(client)
			p.forget(server)
		})
	}
	directions.Wait()
}

// keep registers a connection, unless the proxy refuses it.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused {
		return false
	}
	p.links[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, c)
}

// piece is data from one read, with its due time.
type piece struct {
	bytes []byte
	due   time.Time
}

func (p *Proxy) delay() time.Duration { return time.Duration(p.delayNs.Load()) }

func (p *Proxy) replyDelay() time.Duration {
	if p.replies.Add(1)%2 == 0 {
		return p.delay()
	}
	return p.delay() + time.Duration(p.lateNs.Load())
}

// pass copies one direction. A delayed piece does not delay the next ones further.
func (p *Proxy) pass(from, to net.Conn, delay func() time.Duration) {
	const most = 1024 // delayed pieces; beyond that, reading stops
	pieces := make(chan piece, most)
	defer close(pieces)
	go func() {
		defer to.Close()
		for next := range pieces {
			if !p.sleepUntil(next.due) || !p.awaitFlow() {
				break
			}
			if _, err := to.Write(next.bytes); err != nil {
				break
			}
		}
		for range pieces { // drained until the reader notices
		}
	}()
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		pieces <- piece{bytes: buf[:n], due: time.Now().Add(delay())}
	}
}

func (p *Proxy) sleepUntil(due time.Time) bool {
	d := time.Until(due)
	return d <= 0 || awaits(p, time.After(d))
}

func (p *Proxy) awaitFlow() bool {
	p.mu.Lock()
	flowing := p.flowing
	p.mu.Unlock()
	return awaits(p, flowing)
}

// awaits returns false if the proxy is closed before.
func awaits[T any](p *Proxy, ch <-chan T) bool {
	select {
	case <-ch:
		return true
	case <-p.ctx.Done():
		return false
	}
}

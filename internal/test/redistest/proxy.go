package redistest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes TCP connections on to a server, and can be slow or broken. It is safe for concurrent use.
type Proxy struct {
	Addr string

	target   string
	listener net.Listener
	delayNs  atomic.Int64
	lateNs   atomic.Int64 // of every other reply
	replies  atomic.Int64
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu      sync.Mutex
	links   map[net.Conn]struct{} // guarded by mu: both sides of what is open
	refused bool                  // guarded by mu
	flowing chan struct{}         // guarded by mu: closed while bytes are passed on
}

// NewProxy runs a proxy in front of an address until the test ends.
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
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, links: map[net.Conn]struct{}{}, flowing: make(chan struct{})}
	close(p.flowing)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.accept()
	return p, nil
}

// Delay holds back what passes, in each direction, for d.
func (p *Proxy) Delay(d time.Duration) { p.delayNs.Store(int64(d)) }

// LateByTurns holds back every other reply for d: its requests are not, and have been executed meanwhile.
func (p *Proxy) LateByTurns(d time.Duration) { p.lateNs.Store(int64(d)) }

// Cut ends all connections, and new ones as soon as they are made, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
	p.closeLinksLocked()
}

// BlackHole passes nothing on, and keeps connections open, until Heal: no FIN and no RST tells that the server is away.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // it does already
	}
}

// Heal ends Delay, LateByTurns, Cut and BlackHole. What a black hole has taken is passed on now.
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

// Close ends the proxy and its connections.
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

// keep reports whether the connection may be used.
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

// piece is what was read at once, and when it is due on the other side.
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

// pass copies one direction. What is delayed does not delay what is read behind it once more.
func (p *Proxy) pass(from, to net.Conn, delay func() time.Duration) {
	const most = 1024 // pieces that are held back; then nothing is read
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
		for range pieces { // nobody takes them, until the reader has noticed
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
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *Proxy) awaitFlow() bool {
	p.mu.Lock()
	flowing := p.flowing
	p.mu.Unlock()
	select {
	case <-flowing:
		return true
	case <-p.ctx.Done():
		return false
	}
}

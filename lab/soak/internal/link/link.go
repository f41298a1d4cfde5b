// Package link is a network between two servers that can be cut and slowed down. A Link is safe for
// concurrent use.
package link

import (
	"context"
	"net"
	"sync"
	"time"
)

// pieceBytes are forwarded at once.
const pieceBytes = 16 << 10

// Link forwards connections to a server.
type Link struct {
	Addr string

	listener net.Listener
	ctx      context.Context // until Close
	end      context.CancelFunc

	mu        sync.Mutex // guards all below
	target    string
	conns     map[net.Conn]struct{} // both sides of each connection
	isCut     bool
	delay     time.Duration // of each piece
	perSecond int           // bytes of a connection's direction; 0 for no bound
	flowing   chan struct{} // closed while bytes flow
}

// Open opens a Link that leads nowhere yet.
func Open() (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // on this machine
	if err != nil {
		return nil, err
	}
	k := &Link{Addr: l.Addr().String(), listener: l, conns: map[net.Conn]struct{}{}, flowing: make(chan struct{})}
	close(k.flowing)
	k.ctx, k.end = context.WithCancel(context.Background())
	go k.accept()
	return k, nil
}

// Lead sets the server that new connections lead to.
func (k *Link) Lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.target = to
}

// Cut closes all connections, also new ones, until Heal.
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = true
	k.closeLocked()
}

// Hold stops forwarding until Heal. Connections stay open, so nobody is told.
func (k *Link) Hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.flowing:
		k.flowing = make(chan struct{})
	default:
	}
}

// Slow delays each piece, and bounds the bytes per second of a connection.
func (k *Link) Slow(delay time.Duration, perSecond int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay, k.perSecond = delay, perSecond
}

// Heal ends Cut, Hold and Slow.
func (k *Link) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut, k.delay, k.perSecond = false, 0, 0
	select {
	case <-k.flowing:
	default:
		close(k.flowing)
	}
}

// Close ends the Link.
func (k *Link) Close() {
	k.end()
	_ = k.listener.Close()
	k.Cut()
}

func (k *Link) closeLocked() {
	for c := range k.conns {
		_ = c.Close()
	}
	clear(k.conns)
}

func (k *Link) accept() {
	for {
		client, err := k.listener.Accept()
		if err != nil {
			return
		}
		go k.serve(client)
	}
}

func (k *Link) serve(client net.Conn) {
	defer k.forget(client)
	to, ok := k.keep(client)
	if !ok {
		return
	}
	server, err := new(net.Dialer).DialContext(k.ctx, "tcp", to)
	if err != nil {
		return
	}
	defer k.forget(server)
	if _, ok := k.keep(server); !ok {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			k.pass(way[0], way[1])
			k.forget(way[0])
			k.forget(way[1])
		})
	}
	both.Wait()
}

func (k *Link) keep(c net.Conn) (target string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isCut {
		return "", false
	}
	k.conns[c] = struct{}{}
	return k.target, true
}

func (k *Link) forget(c net.Conn) {
	_ = c.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, c)
}

// pass forwards one direction.
func (k *Link) pass(from, to net.Conn) {
	buf := make([]byte, pieceBytes)
	for {
		n, err := from.Read(buf[:k.most()])
		if err != nil || !k.wait(n) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// most returns the size of a piece: a slow link is to be slow evenly.
func (k *Link) most() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.perSecond == 0 {
		return pieceBytes
	}
	return min(max(k.perSecond/20, 1), pieceBytes)
}

// wait waits as long as a piece takes, and until bytes flow.
func (k *Link) wait(bytes int) bool {
	k.mu.Lock()
	pause, flowing := k.delay, k.flowing
	if k.perSecond > 0 {
		pause += time.Duration(bytes) * time.Second / time.Duration(k.perSecond)
	}
	k.mu.Unlock()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-k.ctx.Done():
			return false
		}
	}
	select {
	case <-flowing:
		return true
	case <-k.ctx.Done():
		return false
	}
}

package door

import (
	"context"
	"net"
	"sync"
	"time"

	"cellserver/internal/edge/server"
)

// passed has connections that event loops hand over accepted by net/http.
type passed struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPassed() passed {
	closed := make(chan struct{})
	return passed{conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (p passed) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p passed) Close() error {
	p.close()
	return nil
}

func (passed) Addr() net.Addr { return &net.TCPAddr{} }

// takeOver has net/http serve a connection from where an event loop has left it.
func (d *Door) takeOver(nc net.Conn, g *server.Guest, input, replies []byte) (end func(server.Reason)) {
	c := &Conn{wire: &wire{Conn: nc, guest: g}, door: d, host: g.Peer.Network()}
	c.Conn = &resumed{Conn: c.wire, input: input}
	c.know(g.Peer)
	left := len(input) + len(replies)
	c.hold(left)
	d.passing.Go(func() {
		if len(replies) > 0 {
			_ = nc.SetWriteDeadline(time.Now().Add(unreadTimeout))
			if _, err := c.Conn.Write(replies); err != nil {
				_ = c.Close()
				return
			}
		}
		c.hold(-left)
		select {
		case d.passed.conns <- c:
		case <-d.passed.closed:
			_ = c.Close()
		}
	})
	return c.end
}

// AwaitPassed waits until connections that event loops have handed over got their answers, or ctx is done. It
// is called once the loops have ended.
func (d *Door) AwaitPassed(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		d.passing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// resumed is a connection of which some input was read before.
type resumed struct {
	net.Conn
	input []byte
}

func (r *resumed) Read(b []byte) (int, error) {
	if len(r.input) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.input)
	if r.input = r.input[n:]; len(r.input) == 0 {
		r.input = nil
	}
	return n, nil
}

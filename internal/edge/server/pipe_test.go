package server

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// pipeListener listens in memory and can fail.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	fail   atomic.Int64 // number of failures left
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if l.fail.Add(-1) >= 0 {
		return nil, errors.New("accept4: too many open files")
	}
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Net: "pipe", Name: "pipe"} }

func (l *pipeListener) dial() net.Conn {
	toServer, fromClient := net.Pipe()
	toClient, fromServer := net.Pipe()
	l.conns <- &pipe{Conn: toServer, out: fromServer}
	return &pipe{Conn: toClient, out: fromClient}
}

// pipe is one end of a connection in memory whose directions close separately.
type pipe struct {
	net.Conn // what is read from
	out      net.Conn
}

func (p *pipe) Write(b []byte) (int, error)        { return p.out.Write(b) }
func (p *pipe) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }
func (p *pipe) CloseWrite() error                  { return p.out.Close() }
func (p *pipe) Close() error                       { return errors.Join(p.out.Close(), p.Conn.Close()) }

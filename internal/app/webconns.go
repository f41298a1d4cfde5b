package app

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"cellserver/internal/base/often"
)

// webConns admits every new connection to the metrics address, so that slow or many clients cannot keep out
// health checks: beyond the limit it closes a connection of the host with most. Of those it closes the one
// that has waited longest for a request or, if all have one, the one with the oldest request. It is safe for
// concurrent use.
type webConns struct {
	maxConns int
	log      *slog.Logger
	now      func() int64

	mu     sync.Mutex // rank 90: guards all below
	turn   uint64     // counts the changes
	conns  map[net.Conn]webConn
	closed often.Counter
}

type webConn struct {
	host    string
	since   uint64 // a value of turn
	waiting bool   // for a request or the rest of its header
}

// changed is the http.Server's ConnState.
func (w *webConns) changed(nc net.Conn, state http.ConnState) {
	if excess := w.note(nc, state); excess != nil {
		if secured, ok := excess.(*tls.Conn); ok {
			excess = secured.NetConn() // skips TLS's close_notify, which could block
		}
		_ = excess.Close()
		if count := w.closed.Due(w.now()); count > 0 {
			w.log.Warn("too many connections to the metrics address; closed the slowest of the host with most",
				"client", excess.RemoteAddr().String(), "count", count)
		}
	}
}

// note returns a connection to close, or nil.
func (w *webConns) note(nc net.Conn, state http.ConnState) (excess net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(w.conns, nc)
		return nil
	}
	c, known := w.conns[nc]
	if !known && state != http.StateNew {
		return nil // closed by excessLocked
	}
	if state == http.StateNew {
		c.host = hostOf(nc)
		if len(w.conns) >= w.maxConns {
			excess = w.excessLocked()
			delete(w.conns, excess)
		}
	}
	w.turn++
	c.since, c.waiting = w.turn, state != http.StateActive
	w.conns[nc] = c
	return excess
}

func hostOf(nc net.Conn) string {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}

// excessLocked chooses the connection to close.
func (w *webConns) excessLocked() (excess net.Conn) {
	have := map[string]int{}
	for _, c := range w.conns {
		have[c.host]++
	}
	var first webConn
	before := func(c webConn) bool {
		if have[c.host] != have[first.host] {
			return have[c.host] > have[first.host]
		}
		if c.waiting != first.waiting {
			return c.waiting
		}
		return c.since < first.since
	}
	for nc, c := range w.conns {
		if excess == nil || before(c) {
			excess, first = nc, c
		}
	}
	return excess
}

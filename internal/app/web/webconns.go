package web

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"cellserver/internal/base/often"
)

// webConns has room for every new connection to the metrics address, so that clients that are slow, or many, cannot keep
// out the health checks: beyond the limit it closes one of the host that has most. Of those it is the connection that has
// waited longest for a request, or, if all have one, the one whose request is oldest. It is safe for concurrent use.
type webConns struct {
	most int
	log  *slog.Logger
	now  func() int64

	mu     sync.Mutex // guards all below
	turn   uint64     // counts the changes
	conns  map[net.Conn]webConn
	closed often.Counter
}

type webConn struct {
	host    string
	since   uint64 // turn
	waiting bool   // for a request, or for the rest of its header
}

// changed is the http.Server's ConnState.
func (w *webConns) changed(nc net.Conn, state http.ConnState) {
	if excess := w.note(nc, state); excess != nil {
		if secured, ok := excess.(*tls.Conn); ok {
			excess = secured.NetConn() // a farewell could take a while
		}
		_ = excess.Close()
		if count := w.closed.Due(w.now()); count > 0 {
			w.log.Warn("too many connections to the metrics address; the slowest one of the host with most was closed",
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
		return nil // it was closed
	}
	if state == http.StateNew {
		c.host = hostOf(nc)
		if len(w.conns) >= w.most {
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

// excessLocked chooses the connection that makes room for another.
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

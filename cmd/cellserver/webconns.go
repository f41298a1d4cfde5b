package main

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"cellserver/internal/often"
)

// webConns has room for every new connection to the metrics address, so that clients that are slow, or many, cannot keep
// out the health checks: beyond the limit it closes the connection that has waited longest for a request, or, if all have
// one, the one whose request is oldest. It is safe for concurrent use.
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
			w.log.Warn("too many connections to the metrics address; the one that was slowest was closed",
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
	if _, known := w.conns[nc]; !known && state != http.StateNew {
		return nil // it was closed
	}
	if state == http.StateNew && len(w.conns) >= w.most {
		excess = w.slowestLocked()
		delete(w.conns, excess)
	}
	w.turn++
	w.conns[nc] = webConn{w.turn, state != http.StateActive}
	return excess
}

func (w *webConns) slowestLocked() (slowest net.Conn) {
	var least webConn
	for nc, c := range w.conns {
		if slowest == nil || c.waiting && !least.waiting || c.waiting == least.waiting && c.since < least.since {
			slowest, least = nc, c
		}
	}
	return slowest
}

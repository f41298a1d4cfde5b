package app

import (
	"net"
	"net/http"
	"slices"
	"testing"
)

// hostConn is a connection of a host.
type hostConn struct {
	net.Conn
	host byte
}

func (c *hostConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, c.host)} }

// TestWhichConnectionIsClosed: one of the host with most connections; first the one waiting longest for a
// request.
func TestWhichConnectionIsClosed(t *testing.T) {
	w := webConns{maxConns: 3, conns: map[net.Conn]webConn{}}
	conns := make([]net.Conn, 13)
	for i := range conns {
		conns[i] = &hostConn{host: byte(i / 10)}
	}
	for i, step := range []struct {
		conn   int
		state  http.ConnState
		closes int // -1 for none
	}{
		{0, http.StateNew, -1}, {1, http.StateNew, -1}, {2, http.StateNew, -1},
		{0, http.StateActive, -1},
		{3, http.StateNew, 1},
		{1, http.StateClosed, -1},
		{0, http.StateIdle, -1},
		{4, http.StateNew, 2},
		{3, http.StateActive, -1}, {4, http.StateActive, -1},
		{2, http.StateActive, -1}, // it was closed meanwhile
		{5, http.StateNew, 0},
		{5, http.StateActive, -1},
		{6, http.StateNew, 3}, // all have requests
		{4, http.StateClosed, -1},
		{7, http.StateNew, -1},
		{10, http.StateNew, 6}, // of another host
		{10, http.StateActive, -1},
		{11, http.StateNew, 7},  // the first host still has most
		{12, http.StateNew, 11}, // the other host has most
	} {
		if closes := slices.Index(conns, w.note(conns[step.conn], step.state)); closes != step.closes {
			t.Errorf("step %d, connection %d: closed %d, want %d", i, step.conn, closes, step.closes)
		}
	}
}

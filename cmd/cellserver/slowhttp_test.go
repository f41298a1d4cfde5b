package main

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// slowRequests are what clients of the metrics address send at first; then a byte now and then.
var slowRequests = []string{
	"GET / HTTP/1.1\r\nHost: local",
	"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
	"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"",
}

// TestHealthBesideSlowClients: however many there are, and however often they come again, the health checks answer.
func TestHealthBesideSlowClients(t *testing.T) {
	p := startServer(t)
	stop := make(chan struct{})
	var slow sync.WaitGroup
	for i := range 100 {
		slow.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					beSlow(p.metrics, slowRequests[i%len(slowRequests)], stop)
					time.Sleep(100 * time.Millisecond) // or the test would need all of a busy machine
				}
			}
		})
	}
	defer slow.Wait()
	defer close(stop)
	p.Logged(t, "too many connections to the metrics address")
	for range 5 {
		if code := p.ask(t, "/healthz", "", nil); code != http.StatusOK {
			t.Errorf("/healthz: got %d", code)
		}
		p.ask(t, "/readyz", "", nil) // answers, even if that is that the machine is too busy
	}
}

// beSlow sends the request and then a byte now and then, reads nothing, and returns when the connection is closed.
func beSlow(addr, request string, stop <-chan struct{}) {
	attacker := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := attacker.Dial("tcp", addr)
	if err != nil { // not every system has more than one address on loopback
		nc, err = net.Dial("tcp", addr)
	}
	if err != nil {
		return
	}
	defer func() { _ = nc.Close() }()
	_ = nc.(*net.TCPConn).SetReadBuffer(1 << 10)
	_, err = io.WriteString(nc, request)
	for err == nil {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
			_, err = io.WriteString(nc, "x")
		}
	}
}

// hostConn is a connection of a host.
type hostConn struct {
	net.Conn
	host byte
}

func (c *hostConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, c.host)} }

// TestWhichConnectionIsClosed: one of the host that has most; the one that has waited longest for a request, before any
// that has one.
func TestWhichConnectionIsClosed(t *testing.T) {
	w := webConns{most: 3, conns: map[net.Conn]webConn{}}
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

package wire

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"cellserver/e2e/harness"
)

// slowRequests are first bytes for the metrics address; a byte now and then follows.
var slowRequests = []string{
	"GET / HTTP/1.1\r\nHost: local",
	"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
	"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"",
}

// TestHealthBesideSlowClients: health checks are answered beside any number of slow clients.
func TestHealthBesideSlowClients(t *testing.T) {
	p := harness.StartServer(t)
	stop := make(chan struct{})
	var slow sync.WaitGroup
	for i := range 100 {
		slow.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					beSlow(p.Metrics, slowRequests[i%len(slowRequests)], stop)
					time.Sleep(100 * time.Millisecond) // spares a busy machine
				}
			}
		})
	}
	defer slow.Wait()
	defer close(stop)
	p.Logged(t, "too many connections to the metrics address")
	for range 5 {
		if code := p.Ask(t, "/healthz", "", nil); code != http.StatusOK {
			t.Errorf("/healthz: got %d", code)
		}
		p.Ask(t, "/readyz", "", nil) // 503 will do, too
	}
}

// beSlow sends the request and a byte now and then, without reading, until the connection is closed.
func beSlow(addr, request string, stop <-chan struct{}) {
	attacker := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := attacker.Dial("tcp", addr)
	if err != nil { // some systems have one loopback address
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

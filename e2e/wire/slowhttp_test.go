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

// slowRequests are what clients of the metrics address send at first; then a byte now and then.
var slowRequests = []string{
	"GET / HTTP/1.1\r\nHost: local",
	"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
	"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"",
}

// TestHealthBesideSlowClients: however many there are, and however often they come again, the health checks answer.
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
					time.Sleep(100 * time.Millisecond) // or the test would need all of a busy machine
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
		p.Ask(t, "/readyz", "", nil) // any answer will do, 503 too
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

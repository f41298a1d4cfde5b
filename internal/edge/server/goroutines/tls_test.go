package goroutines

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// TestTLSItselfIsBounded checks that a client is closed that makes TLS answer again and again and reads
// nothing.
func TestTLSItselfIsBounded(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	g := New(&conn.Host{Now: func() int64 { return 0 }, Handshakes: conn.NewHandshakes()})
	c := newConnection(g, server, peer.Peer{})
	c.secure(&tls.Config{})
	defer c.out.wait()
	defer c.Kill()
	go func() {
		for {
			if _, err := client.Write([]byte{0}); err != nil {
				return
			}
		}
	}()
	answer := make([]byte, 1<<10)
	for range maxOwnOutput/len(answer) + 2 {
		if _, err := c.secured.Write(answer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.secured.Read(make([]byte, 1)); err != nil {
			if !errors.Is(err, errUnread) {
				t.Errorf("got %v, want %v", err, errUnread)
			}
			return
		}
	}
	t.Error("the answers are not bounded")
}

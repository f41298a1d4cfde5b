package door_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"cellserver/internal/wire/peer"
)

// TestAnswersAtTheEnd: a door that ends waits for answers that an event loop has left to it.
func TestAnswersAtTheEnd(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int64
	d, on := serve(t, l, slowSession{&now, &most})
	g, refusal := on.Enter(nc, peer.HTTP)
	if refusal != "" {
		t.Fatal(refusal)
	}
	const size = 16 << 20 // more than a socket takes
	d.PassAtEnd(nc, g, make([]byte, size))
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, client)
		read <- n
	}()
	d.AwaitPassed(t.Context())
	if n := on.Stats().Connected; n != 0 {
		t.Errorf("%d clients are left", n)
	}
	if n := <-read; n != size {
		t.Errorf("got %d bytes of %d", n, size)
	}
}

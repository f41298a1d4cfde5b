package link

import (
	"io"
	"net"
	"testing"
	"time"

	"cellserver/internal/test/patience"
)

// echo returns the address of a server that returns what it is sent.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func TestLink(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	k.Lead(echo(t))
	ask := func(c net.Conn) error {
		if _, err := c.Write([]byte("abc")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 3))
		return err
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", k.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return patience.Conn{Conn: c}
	}
	first := dial()
	if err := ask(first); err != nil {
		t.Error(err)
	}
	k.Slow(time.Millisecond, 100)
	if err := ask(first); err != nil {
		t.Error("slow:", err)
	}
	k.Cut()
	if ask(first) == nil || ask(dial()) == nil {
		t.Error("a link that is cut forwards")
	}
	k.Heal()
	second := dial()
	if err := ask(second); err != nil {
		t.Error("healed:", err)
	}
	k.Hold()
	answered := make(chan error, 1)
	go func() { answered <- ask(second) }()
	time.Sleep(20 * time.Millisecond)
	select {
	case err := <-answered:
		t.Error("a held link forwards:", err)
	default:
	}
	k.Heal()
	if err, ok := patience.Receive(answered); !ok || err != nil {
		t.Error("held and healed:", err)
	}
}

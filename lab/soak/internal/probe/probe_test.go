package probe

import (
	"bufio"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// serve answers each line by a line, after it has stood.
func serve(t *testing.T, stand func(in *bufio.Reader)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		in := bufio.NewReader(nc)
		stand(in)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			_, _ = io.WriteString(nc, "+OK\r\n")
		}
	}()
	return l.Addr().String()
}

// TestStandingServer: calls due while the server stands are all made, and wait.
func TestStandingServer(t *testing.T) {
	const calls = 100
	c := Call{Request: []byte("PING\n"), Reply: 1, Every: time.Millisecond, For: calls * time.Millisecond, Patience: time.Minute}
	r, err := c.Run(serve(t, func(in *bufio.Reader) {
		_, _ = in.Peek(calls * len(c.Request)) // has all of them
		time.Sleep(50 * time.Millisecond)
	}))
	if err != nil || r.Stuck || len(r.Waits) != calls || slices.Min(r.Waits) < 50*time.Millisecond {
		t.Errorf("%v, stuck %v, waits of %v", err, r.Stuck, r.Waits)
	}
}

func TestStuckServer(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	for _, one := range []bool{true, false} {
		c := Call{Request: []byte("PING\n"), Reply: 1, Every: 10 * time.Millisecond, For: 100 * time.Millisecond, Patience: 300 * time.Millisecond, OneAtATime: one}
		if r, err := c.Run(serve(t, func(*bufio.Reader) { <-never })); err != nil || !r.Stuck || len(r.Waits) == 0 {
			t.Errorf("one at a time %v: %v, stuck %v, %d calls", one, err, r.Stuck, len(r.Waits))
		}
	}
}

func TestOneAtATime(t *testing.T) {
	c := Call{Request: []byte("PING\n"), Reply: 1, Every: time.Millisecond, For: 50 * time.Millisecond, Patience: time.Minute, OneAtATime: true}
	if r, err := c.Run(serve(t, func(*bufio.Reader) {})); err != nil || r.Stuck || len(r.Waits) == 0 || len(r.Waits) > 50 {
		t.Errorf("%v, stuck %v, %d calls", err, r.Stuck, len(r.Waits))
	}
	c.Reply = 2 // the connection ends first
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		nc, _ := l.Accept()
		nc.Close()
	}()
	defer func() { _ = l.Close() }()
	if _, err := c.Run(l.Addr().String()); err == nil {
		t.Error("a closed connection is no error")
	}
}

package replication

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"cellserver/internal/store/replicas"
	"cellserver/internal/test/patience"
)

// hanging is a server that answers what a connection begins with, or nothing, and tells of what it leaves
// unanswered.
func hanging(t *testing.T, greets bool) (at replicas.Address, asked <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	told := make(chan struct{}, 1)
	go func() {
		nc, err := listener.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = nc.Close() })
		answers := map[string]string{"hello": "-ERR unknown command\r\n", "client": "+OK\r\n", "ping": "+PONG\r\n"}
		for lines := bufio.NewScanner(nc); lines.Scan(); {
			switch answer := answers[strings.ToLower(lines.Text())]; {
			case answer != "" && greets:
				_, _ = nc.Write([]byte(answer))
			case answer != "" || lines.Text() == "NEVER":
				select {
				case told <- struct{}{}:
				default:
				}
			}
		}
	}()
	return replicas.Address{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port}, told
}

func dialer() Dial { return Dialer(Login{Password: func() (string, error) { return "", nil }}) }

// endsEarly fails unless an error comes that is no time-out.
func endsEarly(t *testing.T, ended <-chan error) {
	t.Helper()
	err, ok := patience.Receive(ended)
	if timeout := net.Error(nil); !ok || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("it ends with %v", err)
	}
}

// TestCloseEndsDo: a connection may be closed while it waits for an answer, which then ends with an error.
func TestCloseEndsDo(t *testing.T) {
	at, asked := hanging(t, true)
	c, err := dialer()(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), "NEVER")
		ended <- err
	}()
	<-asked
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	endsEarly(t, ended)
	if _, err := c.Do(t.Context(), "PING"); err == nil {
		t.Error("a closed connection answers")
	}
}

// TestDialEndsWithItsContext: a replica that is promoted does not wait for a leader that hangs.
func TestDialEndsWithItsContext(t *testing.T) {
	at, asked := hanging(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := dialer()(ctx, at)
		ended <- err
	}()
	<-asked
	cancel()
	endsEarly(t, ended)
}

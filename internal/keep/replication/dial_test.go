package replication

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store/replicas"
)

// TestCloseEndsDo: a connection may be closed while it waits for an answer, which then ends with an error.
func TestCloseEndsDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	asked := make(chan struct{})
	go func() {
		nc, err := listener.Accept()
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(nc); lines.Scan(); {
			switch strings.ToLower(lines.Text()) {
			case "hello":
				_, _ = nc.Write([]byte("-ERR unknown command\r\n"))
			case "client":
				_, _ = nc.Write([]byte("+OK\r\n"))
			case "ping":
				_, _ = nc.Write([]byte("+PONG\r\n"))
			case "never":
				close(asked)
			}
		}
	}()
	addr := listener.Addr().(*net.TCPAddr)
	dial := Dialer(Login{Password: func() (string, error) { return "", nil }})
	c, err := dial(t.Context(), replicas.Address{Host: "127.0.0.1", Port: addr.Port})
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
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it has an answer")
		}
	case <-time.After(answerTime / 2):
		t.Error("it waits for the answer")
	}
	if _, err := c.Do(t.Context(), "PING"); err == nil {
		t.Error("a closed connection answers")
	}
}

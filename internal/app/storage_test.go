package app

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
)

// TestShutdownEndsTheStore: no goroutine of a remote store outlives the server, even while the store hangs.
func TestShutdownEndsTheStore(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		redis := redistest.Server(t)
		a, stop, ended := startApp(t, "--store", "redis://"+redis.Addr, "--on-store-error", "local")
		nc := newTestClient(a)
		pingAfter(t, nc, "CL.THROTTLE k 1 1 60\r\nCL.BUCKET ADD b 5 1\r\n")
		if hangs {
			redis.Stop()
			pingAfter(t, nc, "CL.THROTTLE k 1 1 60\r\n")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		redis.Continue()
		left := func() string {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for stack := range strings.SplitSeq(string(stacks), "\n\n") {
				if strings.Contains(stack, "cellserver/internal/keep/remote") {
					return stack
				}
			}
			return ""
		}
		if !patience.Until(func() bool { return left() == "" }) {
			t.Fatalf("hangs %t: it goes on:\n%s", hangs, left())
		}
	}
}

// pingAfter sends commands and waits for the replies.
func pingAfter(t *testing.T, nc net.Conn, commands string) {
	t.Helper()
	if _, err := io.WriteString(nc, commands+"PING\r\n"); err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(nc); ; {
		if line, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		} else if line == "+PONG\r\n" {
			return
		}
	}
}

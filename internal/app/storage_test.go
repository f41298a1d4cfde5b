package app

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
	"cellserver/internal/wire/peer"
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

// TestConfigCheckOpensNoStore: opening a pool and closing it at once fails by chance.
func TestConfigCheckOpensNoStore(t *testing.T) {
	o, err := optionsOf("--store=redis-cluster://127.0.0.1:1,127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	for range 60_000 {
		if wrong := checkStoreFiles(o, slog.New(slog.DiscardHandler)); wrong != nil {
			t.Fatal(wrong)
		}
	}
}

func TestIsLocal(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.255.3.4:65535": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.2:1": false, "[fd00::2]:1": false, "[::ffff:192.0.2.2]:1": false, "[fe80::1%eth0]:1": false,
		"0.0.0.0:1": false, "localhost:1": false, "": false,
	} {
		if got := isLocal(peer.Peer{Addr: addr}); got != want {
			t.Errorf("%q: got %v", addr, got)
		}
	}
	if !isLocal(peer.Peer{Addr: "/tmp/s:0", Unix: true}) {
		t.Error("a unix socket is not local")
	}
}

// TestRoomBesideTheLoops: scripts never wait for an event loop to be preempted, whatever --io-threads says.
func TestRoomBesideTheLoops(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tt := range []struct{ processors, ioThreads, background, places int }{
		{1, 0, 0, 1},
		{1, 1, 1, 2},
		{2, 0, 1, 2},
		{2, 1, 1, 2},
		{2, 2, 1, 3},
		{4, 1, 3, 4},
		{4, 4, 1, 5},
		{2, 8, 1, 9},
	} {
		runtime.GOMAXPROCS(tt.processors)
		if n, places := backgroundThreads(tt.ioThreads), runtime.GOMAXPROCS(0); n != tt.background || places != tt.places {
			t.Errorf("%d processors, %d loops: %d in the background, of %d in all; want %+v", tt.processors, tt.ioThreads, n, places, tt)
		}
	}
}

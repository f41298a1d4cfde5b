package server

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// TestNobodyStarves: clients that send without end, and read all, leave the others their turns.
func TestNobodyStarves(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s := start(nil)
		var flooded atomic.Int64
		for range 3 {
			flood(t, s.dial(t), &flooded)
		}
		polite := s.dial(t)
		for asked := 0; asked < 20 || flooded.Load() < 300_000; asked++ {
			ask(t, polite, "hello\n", "hello\n")
		}
	})
}

// flood sends as fast as the server takes it, and counts the bytes of the replies, until the test ends.
func flood(t *testing.T, nc net.Conn, received *atomic.Int64) {
	t.Helper()
	go func() {
		for lines := bytes.Repeat([]byte("line\n"), 10_000); ; {
			if _, err := nc.Write(lines); err != nil {
				return
			}
		}
	}()
	go func() {
		for buf := make([]byte, 64<<10); ; {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			received.Add(int64(n))
		}
	}()
}

// TestIdleConnectionsHoldNoBuffer: not even after a command in two pieces, and a reply that was queued.
func TestIdleConnectionsHoldNoBuffer(t *testing.T) {
	const connections, mostBytes = 500, 2048
	if runtime.GOOS != "linux" {
		t.Skip("has no event loops")
	}
	s := start(t, 1, listen(t, "tcp"), func(c *Config) { c.Limits.MaxClients = connections })
	before := heapBytes()
	long := strings.Repeat("x", 100_000)
	for range connections {
		nc := s.dial(t)
		ask(t, nc, "a\n", "a\n")
		if _, err := io.WriteString(nc, "half"); err != nil {
			t.Fatal(err)
		}
		ask(t, nc, "\nlong\n", "half\n"+long)
	}
	if each := (heapBytes() - before) / connections; each > mostBytes {
		t.Errorf("%d bytes a connection, both ends together; want at most %d", each, mostBytes)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

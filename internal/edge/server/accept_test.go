package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/wire/peer"
)

func TestConnectionWithoutADescriptor(t *testing.T) {
	for _, ioThreads := range []int{0, 1} {
		l := newPipeListener()
		start(t, ioThreads, l, nil)
		nc := l.dial()
		defer nc.Close()
		go func() { _, _ = io.WriteString(nc, "a\nwait\nlong\nclose\n") }()
		ended(t, nc, "a\n"+strings.Repeat("x", 100_000)+"bye\n")
	}
}

func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		l.fail.Store(12)
		began := time.Now()
		s := start(t, 0, l, nil)
		nc := l.dial()
		defer nc.Close()
		// 5, 10, 20, 40, 80, 160, 320, 640 ms, and then 1 s each
		if took, want := time.Since(began), 5275*time.Millisecond; took != want {
			t.Errorf("twelve failures took %v, want %v", took, want)
		}
		synctest.Wait()
		if n := strings.Count(s.log.String(), "cannot accept connections"); n != 1 {
			t.Errorf("the failures were logged %d times, want once", n)
		}
	})
}

func BenchmarkConnection(b *testing.B) {
	for _, pipelined := range []int{1, 16, 128} {
		b.Run(fmt.Sprint("pipelined=", pipelined), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			s := New(Config{
				NewSession: func(_ peer.Peer, conn peer.Conn) peer.Session { return &echoes{conn: conn} },
				Limits:     Limits{MaxClients: 1, MaxOutputBytes: 1 << 20},
				Now:        monotonicNs(),
				Log:        slog.New(slog.DiscardHandler),
			})
			go func() { _ = s.Serve(l) }()
			defer s.Shutdown(context.Background()) //nolint:errcheck // nothing is waited for
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			lines := bytes.Repeat([]byte("line\n"), pipelined)
			replies := make([]byte, len(lines))
			b.ReportAllocs()
			for i := 0; i < b.N; i += pipelined {
				if _, err := nc.Write(lines); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, replies); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

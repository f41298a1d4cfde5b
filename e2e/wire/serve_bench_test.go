package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
)

// BenchmarkServe measures the whole program over a unix socket. Its profile optimizes the program: see `make
// profile`.
func BenchmarkServe(b *testing.B) {
	const clients = 50
	socket := filepath.Join(b.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		args := []string{"--addr", "", "--metrics-addr", "", "--unixsocket", socket, "--log-level", "error"}
		ended <- app.Run(ctx, args, nil, io.Discard, io.Discard)
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	harness.Exchange(b, dialSocket(b, socket), "CL.LIMIT SET api 1000000 1000000 60\r\n", "+OK\r\n")
	for _, load := range []struct {
		name      string
		pipelined int
		call      string // takes a key
	}{
		{"1", 1, throttleCall}, {"16", 16, throttleCall}, {"128", 128, throttleCall},
		{"128,fixed", 128, "CL.FIXEDWINDOW f:%06d 1000000 60 1"},
		{"128,sliding", 128, "CL.SLIDINGWINDOW s:%06d 100 60 1"},
		{"128,approx", 128, "CL.SLIDINGWINDOW a:%06d 1000000 60 1 APPROX"},
		{"128,quota", 128, "CL.QUOTA q:%06d 1000000 MONTH 1 TZ Europe/Berlin"},
		{"128,named", 128, "CL.CHECK api %06d"},
	} {
		b.Run("pipelined="+load.name, func(b *testing.B) {
			var all sync.WaitGroup
			for range clients {
				nc, pipelines := dialSocket(b, socket), pipelinesOf(load.call, load.pipelined)
				all.Go(func() {
					for i := range b.N/(clients*load.pipelined) + 1 {
						if err := askMany(nc, pipelines[i%len(pipelines)], load.pipelined); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func dialSocket(b *testing.B, socket string) net.Conn {
	for {
		nc, err := net.Dial("unix", socket)
		if err == nil {
			b.Cleanup(func() { nc.Close() })
			return nc
		}
		time.Sleep(time.Millisecond)
	}
}

const throttleCall = "CL.THROTTLE k:%06d 15 30 60 1"

// pipelinesOf prepares pipelines of calls on random keys out of 100,000, so that the profile shows the
// server, not the client.
func pipelinesOf(call string, calls int) (pipelines [][]byte) {
	words, random := strings.Fields(call), rand.New(rand.NewPCG(1, 2))
	for range max(1, 1024/calls) {
		var b []byte
		for range calls {
			b = fmt.Appendf(b, "*%d\r\n", len(words))
			for _, word := range words {
				if strings.Contains(word, "%") {
					word = fmt.Sprintf(word, random.IntN(100_000))
				}
				b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
			}
		}
		pipelines = append(pipelines, b)
	}
	return pipelines
}

func askMany(nc net.Conn, pipeline []byte, calls int) error {
	if _, err := nc.Write(pipeline); err != nil {
		return err
	}
	var buf [16 << 10]byte
	for lines := calls * 6; lines > 0; {
		n, err := nc.Read(buf[:])
		if err != nil {
			return err
		}
		if bytes.IndexByte(buf[:n], '-') >= 0 && bytes.Contains(buf[:n], []byte("-ERR")) {
			return fmt.Errorf("server replied %s", buf[:n])
		}
		lines -= bytes.Count(buf[:n], []byte("\n"))
	}
	return nil
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// BenchmarkServe measures the whole program, over a unix socket. The compiler optimizes the program with its profile: see
// `make profile`.
func BenchmarkServe(b *testing.B) {
	const clients = 50
	socket := filepath.Join(b.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		args := []string{"--addr", "", "--metrics-addr", "", "--unixsocket", socket, "--log-level", "error"}
		ended <- run(ctx, args, nil, io.Discard, io.Discard)
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	for _, pipelined := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("pipelined=%d", pipelined), func(b *testing.B) {
			var all sync.WaitGroup
			for range clients {
				nc := dialSocket(b, socket)
				all.Go(func() {
					for range b.N/(clients*pipelined) + 1 {
						if err := askMany(nc, pipelined); err != nil {
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

func dialSocket(b *testing.B, socket string) *bufio.ReadWriter {
	for {
		nc, err := net.Dial("unix", socket)
		if err == nil {
			b.Cleanup(func() { nc.Close() })
			return bufio.NewReadWriter(bufio.NewReader(nc), bufio.NewWriter(nc))
		}
		if b.Elapsed() > startTimeout {
			b.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// askMany sends a pipeline of calls for random keys out of 100,000 and reads the replies.
func askMany(nc *bufio.ReadWriter, calls int) error {
	for range calls {
		_, _ = fmt.Fprintf(nc, "*6\r\n$11\r\nCL.THROTTLE\r\n$8\r\nk:%06d\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n1\r\n", rand.N(100_000))
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	for range calls * 6 { // lines
		line, err := nc.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("-")) {
			return fmt.Errorf("server replied %s", line)
		}
	}
	return nil
}

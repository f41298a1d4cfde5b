package resptest

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Serve serves loopback connections on goroutines of their own until the test ends, and returns the address.
func Serve(t testing.TB, serve func(nc net.Conn)) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = nc.Close() }()
				defer context.AfterFunc(t.Context(), func() { _ = nc.Close() })()
				serve(nc)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// ReadCommand reads a command of bulk strings.
func ReadCommand(r *bufio.Reader) (words []string, err error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	words = make([]string, n)
	for i := range words {
		size, err := readLength(r)
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

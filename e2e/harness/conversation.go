package harness

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/test/resptest"
)

// Exchange sends raw and expects exactly the reply want.
func Exchange(t *testing.T, nc net.Conn, raw, want string) {
	t.Helper()
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("%q got %q (%v), want %q", raw, got[:n], err, want)
	}
}

// SayTo sends in and returns the reply, read up to its end.
func SayTo(t *testing.T, nc net.Conn, in, end string) string {
	t.Helper()
	if _, err := io.WriteString(nc, in); err != nil {
		t.Fatal(err)
	}
	return ReadTo(t, nc, end)
}

// ReadTo reads until what was read ends with end.
func ReadTo(t *testing.T, nc net.Conn, end string) string {
	t.Helper()
	var got []byte
	buf := make([]byte, 64<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := nc.Read(buf)
		if err != nil {
			t.Fatalf("%v instead of %q, after %.2000q", err, end, got)
		}
		got = append(got, buf[:n]...)
	}
	return string(got)
}

// readUpTo is ReadTo for goroutines.
func readUpTo(t *testing.T, nc net.Conn, end string) (got []byte) {
	buf := make([]byte, 256<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := nc.Read(buf)
		if err != nil {
			t.Error(err)
			return got
		}
		got = append(got, buf[:n]...)
	}
	return got
}

// Reply sends a command of one line, and returns the reply, without the ends of its lines.
func Reply(t *testing.T, nc net.Conn, command string) string {
	t.Helper()
	got := SayTo(t, nc, command+"\r\nECHO end-of-reply\r\n", "end-of-reply\r\n")
	return strings.TrimSuffix(strings.ReplaceAll(strings.TrimSuffix(got, "$12\r\nend-of-reply\r\n"), "\r\n", " "), " ")
}

// Flood creates n keys over two connections and returns the number of failed calls.
func Flood(t *testing.T, p *Process, prefix string, n int) (failed int) {
	t.Helper()
	const piece, conns = 1000, 2
	var wg sync.WaitGroup
	var sum [conns]int
	for c := range conns {
		nc := p.Dial(t)
		wg.Go(func() {
			for i := 0; i < n/conns; i += piece {
				var calls []byte
				for j := range piece {
					calls = resptest.Append(calls, "CL.THROTTLE", fmt.Sprint(prefix, c, ":", i+j), "0", "1", "3600")
				}
				if _, err := nc.Write(append(calls, "PING\r\n"...)); err != nil {
					t.Error(err)
					return
				}
				replies := readUpTo(t, nc, "+PONG\r\n")
				sum[c] += bytes.Count(replies, []byte("-OOM "))
			}
		})
	}
	wg.Wait()
	return sum[0] + sum[1]
}

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

func Send(t testing.TB, nc net.Conn, raw string) {
	t.Helper()
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
}

// Exchange sends raw and expects exactly the reply want.
func Exchange(t testing.TB, nc net.Conn, raw, want string) {
	t.Helper()
	Send(t, nc, raw)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("%q got %q (%v), want %q", raw, got[:n], err, want)
	}
}

// SayTo sends in and returns the reply, read up to its end.
func SayTo(t *testing.T, nc net.Conn, in, end string) string {
	t.Helper()
	Send(t, nc, in)
	return ReadTo(t, nc, end)
}

// ReadTo reads until what was read ends with end.
func ReadTo(t *testing.T, nc net.Conn, end string) string {
	t.Helper()
	got, err := readTo(nc, end)
	if err != nil {
		t.Fatalf("%v instead of %q, after %.2000q", err, end, got)
	}
	return string(got)
}

func readTo(nc net.Conn, end string) (got []byte, err error) {
	buf := make([]byte, 256<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := nc.Read(buf)
		if err != nil {
			return got, err
		}
		got = append(got, buf[:n]...)
	}
	return got, nil
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
				_, err := nc.Write(append(calls, "PING\r\n"...))
				var replies []byte
				if err == nil {
					replies, err = readTo(nc, "+PONG\r\n")
				}
				if err != nil {
					t.Error(err)
					return
				}
				sum[c] += bytes.Count(replies, []byte("-OOM "))
			}
		})
	}
	wg.Wait()
	return sum[0] + sum[1]
}

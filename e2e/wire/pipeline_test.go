package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

type pipelineReply struct{ limited, limit, remaining, retryAfter, resetAfter int64 }

func readPipelineReply(r *bufio.Reader) (p pipelineReply, err error) {
	var n int64
	for _, into := range []*int64{&n, &p.limited, &p.limit, &p.remaining, &p.retryAfter, &p.resetAfter} {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return p, err
		}
		if _, err := fmt.Sscanf(string(line[1:]), "%d\r\n", into); err != nil {
			return p, fmt.Errorf("%q: %w", line, err)
		}
	}
	if n != 5 {
		return p, fmt.Errorf("an array of %d", n)
	}
	return p, nil
}

// TestPipelineIsWrittenBeforeItIsRead sends whole pipelines before reading: the server must not wait for the
// reader.
func TestPipelineIsWrittenBeforeItIsRead(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		calls := 500_000
		if racetest.OmitsLong() {
			calls = 100_000
		}
		racetest.OneAtATime(t)
		p := startServer(t)
		// A unit leaks per hour, and half a million hours fit into a TAT.
		pipeline := repeat(resptest.Append(nil, "CL.THROTTLE", "k", fmt.Sprint(calls-1), "1", "3600"), calls)
		nc := p.Dial(t)
		stopPings := startPings(t, p)
		if _, err := nc.Write(pipeline); err != nil {
			t.Fatal(err)
		}
		t.Log("while the pipeline was written, another client had", stopPings())
		r := bufio.NewReaderSize(nc, 1<<16)
		for i := range int64(calls) {
			got, err := readPipelineReply(r)
			if err != nil {
				t.Fatalf("reply %d: %v", i, err)
			}
			want := pipelineReply{0, int64(calls), int64(calls) - 1 - i, -1, got.resetAfter}
			if most := 3600 * (i + 1); got != want || got.resetAfter > most || got.resetAfter <= most-3600 {
				t.Fatalf("reply %d is %+v, want %+v", i, got, want)
			}
		}
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
	})
}

func repeat(b []byte, n int) []byte { return []byte(strings.Repeat(string(b), n)) }

// startPings sends one PING after another until stop, which reports the result.
func startPings(t *testing.T, p *harness.Process) (stop func() string) {
	nc := p.Dial(t)
	var done atomic.Bool
	result := make(chan string, 1)
	go func() {
		var longest time.Duration
		n := 0
		for reply := make([]byte, len("+PONG\r\n")); !done.Load() || n == 0; n++ {
			start := time.Now()
			_, err := io.WriteString(nc, "PING\r\n")
			if err == nil {
				_, err = io.ReadFull(nc, reply)
			}
			if err != nil || string(reply) != "+PONG\r\n" {
				t.Errorf("PING got %q, %v", reply, err)
				break
			}
			longest = max(longest, time.Since(start))
		}
		result <- fmt.Sprintf("%d pings answered, the slowest in %s", n, longest)
	}()
	return func() string {
		done.Store(true)
		return <-result
	}
}

// floodUntilClosed sends commands without reading until it is disconnected; the system's buffers vary.
func floodUntilClosed(t *testing.T, nc net.Conn) {
	t.Helper()
	flood := repeat(resptest.Append(nil, "ECHO", strings.Repeat("x", 60_000)), 100)
	var err error
	for err == nil {
		_, err = nc.Write(flood)
	}
	if errors.Is(err, patience.ErrIdle) {
		t.Error("the server has not closed a client that reads nothing")
	}
}

func TestClientThatNeverReadsIsDisconnected(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		racetest.OneAtATime(t)
		const clients, maxOutput = 16, 4 << 20
		p := startServer(t, "--max-output-bytes", fmt.Sprint(maxOutput), "--output-timeout", "1s")
		before, began := p.RSS(t), time.Now()
		var wg sync.WaitGroup
		for range clients {
			nc := p.Dial(t)
			wg.Go(func() { floodUntilClosed(t, nc) })
		}
		peak := 0
		p.Eventually(t, "disconnect those who do not read", func() bool {
			peak = max(peak, p.RSS(t))
			return p.Metric(t, `cellserver_connections_closed_total{reason="output"}`) == clients
		})
		if n := strings.Count(p.Logged(t, "does not read its replies"), "does not read its replies"); n > 1+int(time.Since(began)/time.Minute) {
			t.Errorf("the log tells of them %d times, want once a minute", n)
		}
		wg.Wait()
		p.Eventually(t, "forget the connections", func() bool {
			return p.Metric(t, "cellserver_connections") == 0
		})
		harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
		t.Logf("resident: %d MiB before, %d MiB at most", before>>20, peak>>20)
		if racetest.Enabled {
			return // its memory differs
		}
		// Growing buffers are copied, so several times the pending bytes; still far below the requested 960
		// MB.
		if most := before + 6*clients*maxOutput; peak > most {
			t.Errorf("the server grew from %d to %d MiB, want at most %d", before>>20, peak>>20, most>>20)
		}
		p.Eventually(t, "give the memory back", func() bool {
			time.Sleep(100 * time.Millisecond)
			return p.RSS(t) <= before+32<<20
		})
		t.Logf("resident: %d MiB in the end", p.RSS(t)>>20)
	})
}

func TestClientThatReadsLateGetsEveryReply(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		racetest.OneAtATime(t)
		const calls, echo = 40_000, 1000
		p := startServer(t, "--max-output-bytes", "65536", "--output-timeout", patience.Forever.String())
		nc := p.Dial(t)
		if err := harness.Socket(nc).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		text := func(i int) string { return fmt.Sprintf("%0*d", echo, i) }
		var written atomic.Int64
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range calls {
				n, err := nc.Write(resptest.Append(nil, "ECHO", text(i)))
				if err != nil {
					t.Error(err)
					return
				}
				written.Add(int64(n))
			}
		})
		for last := int64(-1); last != written.Load(); time.Sleep(300 * time.Millisecond) {
			last = written.Load()
		}
		// The system may buffer all requests, but only a few megabytes of replies.
		if n := p.Metric(t, "cellserver_received_bytes_total"); n > calls*echo/2 {
			t.Errorf("the server took %.0f bytes of a client that reads nothing", n)
		}
		r := bufio.NewReader(nc)
		got := make([]byte, len("$1000\r\n")+echo+len("\r\n"))
		for i := range calls {
			if _, err := io.ReadFull(r, got); err != nil || string(got) != "$1000\r\n"+text(i)+"\r\n" {
				t.Fatalf("reply %d is %q, %v", i, got, err)
			}
		}
		writer.Wait()
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
	})
}

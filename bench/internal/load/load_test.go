package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server is a minimal RESP server: a function of its words answers each command.
type server struct {
	addr     netip.AddrPort
	commands atomic.Int64
}

func serve(t *testing.T, answer func(words []string) string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &server{addr: l.Addr().(*net.TCPAddr).AddrPort()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.session(c, answer)
		}
	}()
	return s
}

func (s *server) session(c net.Conn, answer func([]string) string) {
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		var n int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			var size int
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				return
			}
			b := make([]byte, size+2)
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			words[i] = string(b[:size])
		}
		s.commands.Add(1)
		if _, err := w.WriteString(answer(words)); err != nil {
			return
		}
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
	}
}

func open(t *testing.T, s *server, c Config) *Generator {
	t.Helper()
	c.Addr = s.addr
	if c.Command.wire == nil {
		c.Command = NewCommand("CL.THROTTLE", "k:"+KeyMark, "15", "30", "60").LimitedBy('1')
	}
	if c.Keys.Dist == "" {
		c.Keys = Keys{Dist: Uniform, Count: 1000}
	}
	g, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

const allowedReply, limitedReply = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:30\r\n"

func TestEveryReplyIsCounted(t *testing.T) {
	for _, c := range []Config{
		{Conns: 1, Pipeline: 1},
		{Conns: 7, Pipeline: 16, Threads: 2},
		{Conns: 3, Pipeline: 5000}, // more than a socket accepts at once
	} {
		for _, rate := range []float64{0, 1e6} {
			var i atomic.Int64
			s := serve(t, func([]string) string {
				if i.Add(1)%4 == 0 {
					return limitedReply
				}
				return allowedReply
			})
			r, err := open(t, s, c).Run(t.Context(), Plan{Requests: 10_000, Rate: rate})
			if err != nil {
				t.Fatal(err)
			}
			batches := c.Conns * c.Pipeline
			want := (10_000 + batches - 1) / batches * batches
			if r.Requests != want || s.commands.Load() != int64(want) || r.Latency.TotalCount() != int64(want) {
				t.Errorf("%+v: %d replies, %d commands, %d latencies, want %d", c, r.Requests, s.commands.Load(),
					r.Latency.TotalCount(), want)
			}
			if r.Limited != want/4 {
				t.Errorf("%+v: %d limited, want %d", c, r.Limited, want/4)
			}
		}
	}
}

func TestDurationEndsARun(t *testing.T) {
	s := serve(t, func([]string) string { return "+OK\r\n" })
	g := open(t, s, Config{Conns: 2, Pipeline: 3})
	for range 2 { // a generator can be reused
		before := s.commands.Load()
		r, err := g.Run(t.Context(), Plan{Duration: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if int64(r.Requests) != s.commands.Load()-before || r.Requests == 0 || r.Elapsed < 50*time.Millisecond {
			t.Errorf("%d replies to %d commands in %s", r.Requests, s.commands.Load()-before, r.Elapsed)
		}
	}
}

// TestEachConnectionRequests: each connection sends, even if the time is over before it runs.
func TestEachConnectionRequests(t *testing.T) {
	s := serve(t, func([]string) string { return "+OK\r\n" })
	r, err := open(t, s, Config{Conns: 2, Pipeline: 3}).Run(t.Context(), Plan{Duration: 1})
	if err != nil || r.Requests != 6 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestErrorReplyFailsTheRun(t *testing.T) {
	s := serve(t, func([]string) string { return "-ERR no such thing\r\n" })
	_, err := open(t, s, Config{Conns: 4, Pipeline: 2, Threads: 2}).Run(t.Context(), Plan{Requests: 100})
	if !errors.Is(err, errErrorReply) || !strings.Contains(err.Error(), "ERR no such thing") {
		t.Errorf("got %v", err)
	}
}

func TestNoReplyFailsTheRun(t *testing.T) {
	s := serve(t, func([]string) string { return "" })
	g := open(t, s, Config{Conns: 1, Pipeline: 1, Patience: 50 * time.Millisecond})
	if _, err := g.Run(t.Context(), Plan{Requests: 1}); err == nil || !strings.Contains(err.Error(), "no reply") {
		t.Errorf("got %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	s := serve(t, func([]string) string { return "+OK\r\n" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := open(t, s, Config{Conns: 1, Pipeline: 1}).Run(ctx, Plan{Duration: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestOpenLoopSeesTheWholeStall: there is no coordinated omission. Each request that was due during a stall
// is counted with its own wait.
func TestOpenLoopSeesTheWholeStall(t *testing.T) {
	const stall = 300 * time.Millisecond
	var n atomic.Int64
	s := serve(t, func([]string) string {
		if n.Add(1) == 100 {
			time.Sleep(stall)
		}
		return allowedReply
	})
	r, err := open(t, s, Config{Conns: 1, Pipeline: 1}).Run(t.Context(), Plan{Requests: 1000, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(r.Latency.Max()); got < stall*99/100 {
		t.Errorf("the longest latency is %s, want %s", got, stall)
	}
	// 300 requests are due in the stall; half of them wait for half of it or more.
	var long int64
	for _, b := range r.Latency.Distribution() {
		if b.From >= int64(stall)*45/100 {
			long += b.Count
		}
	}
	if long < 140 {
		t.Errorf("%d requests waited for about half of the stall, want 150", long)
	}
}

func TestOpenLoopKeepsTheRate(t *testing.T) {
	s := serve(t, func([]string) string { return allowedReply })
	r, err := open(t, s, Config{Conns: 5, Pipeline: 4, Threads: 2}).Run(t.Context(), Plan{Duration: 200 * time.Millisecond, Rate: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests > 2040 { // fewer where the machine is busy
		t.Errorf("%d requests in 200 ms at 10,000 a second", r.Requests)
	}
}

func TestRefusals(t *testing.T) {
	keys, command := Keys{Dist: Uniform, Count: 1}, NewCommand("PING")
	for want, c := range map[string]Config{
		"cannot connect":  {Conns: 1, Pipeline: 1, Keys: keys, Command: command, Addr: netip.MustParseAddrPort("127.0.0.1:1")},
		"must be 1 or":    {Conns: 0, Pipeline: 1, Keys: keys, Command: command},
		"require as many": {Conns: 1, Pipeline: 1, Threads: 2, Keys: keys, Command: command},
		"no command":      {Conns: 1, Pipeline: 1, Keys: keys},
		"unknown distrib": {Conns: 1, Pipeline: 1, Keys: Keys{Dist: "bell", Count: 1}, Command: command},
		"number of keys":  {Conns: 1, Pipeline: 1, Keys: Keys{Dist: Hot}, Command: command},
		"above 1":         {Conns: 1, Pipeline: 1, Keys: Keys{Dist: Zipf, Count: 1, Skew: 1}, Command: command},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

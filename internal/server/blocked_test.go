package server

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/peer"
)

// flooder is a session that replies to each line with so much that its connection is blocked: to "quit" as the last
// thing it does, and to "slow" before a wait.
type flooder struct {
	conn   peer.Conn
	state  atomic.Int32
	closed bool
	after  *atomic.Int32 // counts what it was fed after the end
}

const (
	flooderReady = iota
	flooderWaiting
	flooderDone

	floodBytes = 8 << 20
	floodWait  = 800 * time.Millisecond
)

func (*flooder) HungUp(peer.Hangup) {}

func (f *flooder) Authenticated() bool { return true }

func (f *flooder) Monitors() bool { return false }

func (f *flooder) Name() string { return "" }

func (f *flooder) Close() {}

func (f *flooder) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	if f.closed {
		f.after.Add(1)
	}
	switch f.state.Load() {
	case flooderWaiting:
		return 0, out, peer.Waiting
	case flooderDone:
		f.state.Store(flooderReady)
		return 0, append(out, "done"...), peer.More
	}
	line, _, ok := bytes.Cut(in, []byte("\n"))
	if !ok {
		return 0, out, peer.NeedInput
	}
	status = peer.More
	switch string(line) {
	case "slow":
		f.state.Store(flooderWaiting)
		time.AfterFunc(floodWait, func() {
			f.state.Store(flooderDone)
			f.conn.Wake()
		})
		status = peer.Waiting
	case "quit":
		f.closed = true
		status = peer.Close
	}
	return len(line) + 1, append(out, strings.Repeat("x", floodBytes)...), status
}

func startFlooder(start starter, change func(*Config)) (s *testServer, after *atomic.Int32) {
	after = &atomic.Int32{}
	s = start(func(c *Config) {
		c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session { return &flooder{conn: conn, after: after} }
		change(c)
	})
	return s, after
}

func TestIdleTimeoutSparesWhoWaits(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s, _ := startFlooder(start, func(c *Config) {
			c.Limits.MaxOutputBytes = floodBytes / 8
			c.Limits.IdleTimeout = floodWait / 2
		})
		nc := s.dial(t)
		write(t, nc, "slow\n")
		if got, err := io.ReadAll(nc); len(got) != floodBytes+len("done") || err != nil {
			t.Errorf("got %d bytes, %v, want %d", len(got), err, floodBytes+len("done"))
		}
	})
}

func TestNothingIsFedAfterClose(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		s, after := startFlooder(start, func(c *Config) {
			c.Limits.MaxOutputBytes = floodBytes / 8
			c.Limits.IdleTimeout = 20 * time.Second
		})
		nc := s.dial(t)
		write(t, nc, "quit\n")
		if got, err := io.ReadAll(nc); len(got) != floodBytes || err != nil {
			t.Errorf("got %d bytes, %v, want %d", len(got), err, floodBytes)
		}
		s.awaitClients(t, 0)
		if n := after.Load(); n != 0 {
			t.Errorf("fed %d times after Close", n)
		}
	})
}

func TestOutputTimeoutHoldsToTheEnd(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		const most = floodBytes * 7 / 8
		s, _ := startFlooder(start, func(c *Config) {
			c.Limits.MaxOutputBytes = most
			c.Limits.OutputTimeout = 500 * time.Millisecond
		})
		nc := s.dial(t)
		write(t, nc, "any\nquit\n")
		// Enough that the connection is not blocked any more, and then no more.
		if _, err := io.ReadFull(nc, make([]byte, floodBytes*11/16)); err != nil {
			t.Fatal(err)
		}
		s.awaitClients(t, 0)
	})
}

// lastWord is a session of lines that notes when the last one has come.
type lastWord struct {
	echoes
	came *atomic.Bool
}

func (l *lastWord) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	if !l.waiting.Load() && bytes.HasPrefix(in, []byte("last\n")) {
		l.came.Store(true)
	}
	return l.echoes.Feed(in, out)
}

// TestWhatWasReadIsExecuted: a client that sends and goes, while its session waits, has all of it executed.
func TestWhatWasReadIsExecuted(t *testing.T) {
	onEachDriver(t, func(t *testing.T, start starter) {
		var came atomic.Bool
		s := start(func(c *Config) {
			c.NewSession = func(_ peer.Peer, conn peer.Conn) peer.Session {
				return &lastWord{echoes: echoes{conn: conn}, came: &came}
			}
		})
		nc := s.dial(t)
		write(t, nc, "wait\nlast\n")
		nc.Close()
		s.await(t, func(st Stats) bool { return st.Accepted == 1 && st.Connected == 0 })
		if !came.Load() {
			t.Error("the last line was not executed")
		}
	})
}

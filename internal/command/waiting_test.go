package command

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/peer"
)

// gate is what the test's own command TEST.WAIT waits for: each opening lets one of them through.
type gate struct{ open atomic.Int64 }

func (g *gate) pass() bool {
	if g.open.Add(-1) >= 0 {
		return true
	}
	g.open.Add(1)
	return false
}

// addWait adds TEST.WAIT to an engine: it replies its argument, later.
func addWait(e *Engine, g *gate) {
	r := &row{name: "test.wait", arity: 2, run: func(s *Session, args [][]byte) error {
		text := string(args[1]) // the input may have moved by then
		s.wait(func(s *Session) bool {
			if !g.pass() {
				return false
			}
			s.w.BulkString(text)
			return true
		})
		return nil
	}}
	e.table.rows = append(e.table.rows, r)
	e.table.byName[r.name] = r
	r.stats = &rowStats{}
}

// TestWaiting goes through a pipeline step by step.
func TestWaiting(t *testing.T) {
	const throttle = "CL.THROTTLE k 1 1 60\r\n"
	type step struct {
		open    int64  // so many may pass
		in      string // comes in, behind what was left
		left    string
		replies string
		status  peer.Status
	}
	first, second := five(0, 2, 1, -1, 60), five(0, 2, 0, -1, 120)
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"alone", []step{
			{in: "TEST.WAIT a\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n"},
			{in: "PING\r\n", replies: pong},
		}},
		{"replies stay in order", []step{
			{in: throttle + "TEST.WAIT a\r\n" + throttle + "PING\r\n", left: throttle + "PING\r\n", replies: first, status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n" + second + pong},
		}},
		{"nothing is executed meanwhile", []step{
			{in: "TEST.WAIT a\r\nFLUSHALL\r\nQUIT\r\n", left: "FLUSHALL\r\nQUIT\r\n", status: peer.Waiting},
			{left: "FLUSHALL\r\nQUIT\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n+OK\r\n+OK\r\n", status: peer.Close},
		}},
		{"several", []step{
			{in: "TEST.WAIT a\r\nTEST.WAIT b\r\nPING\r\nTEST.WAIT c\r\n", left: "TEST.WAIT b\r\nPING\r\nTEST.WAIT c\r\n", status: peer.Waiting},
			{open: 1, left: "PING\r\nTEST.WAIT c\r\n", replies: "$1\r\na\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\nb\r\n" + pong, status: peer.Waiting},
			{open: 1, replies: "$1\r\nc\r\n"},
		}},
		{"woken too early", []step{
			{in: "TEST.WAIT a\r\nPING\r\n", left: "PING\r\n", status: peer.Waiting},
			{left: "PING\r\n", status: peer.Waiting},
			{left: "PING\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n" + pong},
		}},
		{"woken before it waits", []step{
			{open: 1},
			{in: "TEST.WAIT a\r\n", status: peer.Waiting},
			{replies: "$1\r\na\r\n"},
		}},
		{"more comes in meanwhile", []step{
			{in: "TEST.WAIT a\r\nPI", left: "PI", status: peer.Waiting},
			{in: "NG\r\n*1\r\n$4\r\nPI", left: "PING\r\n*1\r\n$4\r\nPI", status: peer.Waiting},
			{open: 1, left: "*1\r\n$4\r\nPI", replies: "$1\r\na\r\n" + pong},
			{in: "NG\r\n", replies: pong},
		}},
		{"a protocol error behind it", []step{
			{in: "TEST.WAIT a\r\n*x\r\n", left: "*x\r\n", status: peer.Waiting},
			{open: 1, left: "*x\r\n", replies: "$1\r\na\r\n-ERR Protocol error: invalid multibulk length\r\n", status: peer.Close},
		}},
		{"a web page behind it", []step{
			{in: "TEST.WAIT a\r\nPOST / HTTP/1.1\r\nFLUSHALL\r\n", left: "POST / HTTP/1.1\r\nFLUSHALL\r\n", status: peer.Waiting},
			{left: "POST / HTTP/1.1\r\nFLUSHALL\r\n", status: peer.Waiting},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var g gate
			r := newRig()
			addWait(r.engine, &g)
			s, left := r.session(), ""
			for i, step := range tt.steps {
				g.open.Add(step.open)
				replies, after, status := feed(t, s, left+step.in)
				if replies != step.replies || after != step.left || status != step.status {
					t.Errorf("step %d: got %q, left %q, status %d; want %+v", i, replies, after, status, step)
				}
				left = after
			}
		})
	}
}

// TestWakeFromAnotherGoroutine drives sessions as a connection does, while others wake them, now and then too
// early and more than once. It is for the race detector.
func TestWakeFromAnotherGoroutine(t *testing.T) {
	const waits = 200
	var g gate
	r := newRig()
	addWait(r.engine, &g)
	woken := make(chan struct{}, 1)
	s := r.engine.NewSession(peer.Peer{}, &testConn{woken: woken})
	waiting := make(chan struct{}, waits)
	go func() {
		for range waits {
			<-waiting
			s.conn.Wake() // for nothing
			g.open.Add(1)
			s.conn.Wake()
		}
	}()
	buf := []byte(strings.Repeat("TEST.WAIT x\r\nCL.THROTTLE k 999 1 1\r\n", waits))
	var out []byte
	for status, answered := peer.Waiting, 0; status == peer.Waiting || len(buf) > 0; {
		var n int
		n, out, status = s.Feed(buf, out)
		buf = buf[n:]
		if status != peer.Waiting {
			continue
		}
		if done := strings.Count(string(out), "$1\r\nx\r\n"); done >= answered { // a new one waits
			waiting <- struct{}{}
			answered = done + 1
		}
		select {
		case <-woken:
		case <-time.After(30 * time.Second):
			t.Fatalf("nobody wakes the session, %d bytes from the end", len(buf))
		}
	}
	all := parseReplies(t, string(out))
	if len(all) != 2*waits {
		t.Fatalf("%d replies, want %d", len(all), 2*waits)
	}
	for i := 0; i < len(all); i += 2 {
		if all[i].text != "x" || len(all[i+1].elements) != 5 || all[i+1].elements[2].number != int64(999-i/2) {
			t.Fatalf("replies %d and %d: got %+v, %+v", i, i+1, all[i], all[i+1])
		}
	}
}

// TestAside: what may take long leaves the driver's goroutine, and a panic there ends its own session only.
func TestAside(t *testing.T) {
	many := make([]string, asideKeys+1)
	for i := range many {
		many[i] = "k" + strconv.Itoa(i)
	}
	const throttle = "CL.THROTTLE k7 1 1 60\r\n"
	for _, tt := range []struct{ name, in, want string }{
		{"DBSIZE", "DBSIZE\r\n", ":1\r\n"},
		{"FLUSHDB", "FLUSHDB\r\n", "+OK\r\n"},
		{"EXISTS", encode(append([]string{"EXISTS"}, many...)...), ":1\r\n"},
		{"DEL", encode(append([]string{"DEL"}, many...)...), ":1\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newRig().session()
			say(t, s, throttle)
			in := []byte(tt.in + "PING\r\n")
			n, out, status := s.Feed(in, nil)
			if n != len(tt.in) || len(out) > 0 || status != peer.Waiting {
				t.Fatalf("consumed %d of %d bytes, replied %q, status %d; want it to wait", n, len(tt.in), out, status)
			}
			clear(in[:n]) // the driver uses it again
			<-s.conn.(*testConn).woken
			if _, out, status = s.Feed(in[n:], nil); string(out) != tt.want+pong || status != peer.NeedInput {
				t.Errorf("replied %q, status %d", out, status)
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		s := newRig().session()
		s.borrow()
		s.aside(breaks, nil)
		s.giveBack()
		<-s.conn.(*testConn).woken
		defer func() {
			if p := fmt.Sprint(recover()); !strings.Contains(p, "it broke") || !strings.Contains(p, "breaks") {
				t.Errorf("panicked with %q, want the cause and its place", p)
			}
		}()
		s.Feed(nil, nil)
	})
}

func breaks() { panic("it broke") }

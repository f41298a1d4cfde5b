package server

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/wire/peer"
)

// echoes is a session that replies to each line with itself, but for a few commands.
type echoes struct {
	conn     peer.Conn
	waiting  atomic.Bool // until release
	locked   bool        // not authenticated
	monitors bool

	input, inputFree, output atomic.Int64 // reported memory of the connection
}

func (*echoes) HungUp(peer.Hangup)    {}
func (e *echoes) Authenticated() bool { return !e.locked }
func (e *echoes) Listens() bool       { return e.monitors }
func (e *echoes) HoldsInput(bytes, free int) {
	e.input.Store(int64(bytes))
	e.inputFree.Store(int64(free))
}

func (e *echoes) HoldsOutput(bytes int) { e.output.Store(int64(bytes)) }
func (e *echoes) Name() string          { return "me" }
func (e *echoes) Close()                {}

// floodBytes exceeds the buffers of the system.
const floodBytes = 12 << 20

// release ends what "stay" or "slow" began.
func (e *echoes) release() {
	e.waiting.Store(false)
	e.conn.Wake()
}

func (e *echoes) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	if e.waiting.Load() {
		return 0, out, peer.Waiting
	}
	line, _, ok := bytes.Cut(in, []byte("\n"))
	if !ok {
		return 0, out, peer.NeedInput
	}
	n := len(line) + 1
	switch text := string(line); {
	case text == "panic":
		panic("the session broke")
	case text == "close":
		return n, append(out, "bye\n"...), peer.Close
	case text == "forever":
		return 0, out, peer.More
	case text == "abort":
		return n, append(out, "never seen\n"...), peer.Abort
	case text == "monitor" || text == "unmonitor":
		e.monitors = text == "monitor"
		return n, append(append(out, line...), '\n'), peer.More
	case text == "stay":
		e.waiting.Store(true)
		return n, out, peer.Waiting
	case text == "wait":
		e.waiting.Store(true)
		go func() {
			time.Sleep(time.Millisecond)
			e.release()
		}()
		return n, out, peer.Waiting
	case text == "flood" || text == "slow" || text == "quit":
		e.waiting.Store(text == "slow")
		status = map[string]peer.Status{"flood": peer.More, "slow": peer.Waiting, "quit": peer.Close}[text]
		return n, append(out, strings.Repeat("x", floodBytes)...), status
	case strings.HasPrefix(text, "long"):
		return n, append(out, strings.Repeat("x", 100_000)...), peer.More
	default:
		return n, append(append(out, line...), '\n'), peer.More
	}
}

// observed records the calls of a session.
type observed struct {
	peer.Session
	peer   peer.Peer
	conn   peer.Conn
	busy   atomic.Int32 // calls in progress
	feeds  atomic.Int32
	closes atomic.Int32
	faults atomic.Int32

	mu      sync.Mutex // guards all below
	fed     string     // end of the consumed bytes
	hangups []peer.Hangup
}

func (w *observed) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	w.enter()
	defer w.busy.Add(-1)
	w.feeds.Add(1)
	given := string(in[:min(len(in), 100)])
	consumed, replies, status = w.Session.Feed(in, out)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fed += given[:min(consumed, len(given))]
	w.fed = w.fed[max(0, len(w.fed)-100):]
	return consumed, replies, status
}

func (w *observed) HungUp(h peer.Hangup) {
	w.enter()
	defer w.busy.Add(-1)
	w.mu.Lock()
	w.hangups = append(w.hangups, h)
	w.mu.Unlock()
	w.Session.HungUp(h)
}

func (w *observed) hungUp() []peer.Hangup {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hangups)
}

func (w *observed) lastFed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fed
}

func (w *observed) Close() {
	w.enter()
	defer w.busy.Add(-1)
	w.closes.Add(1)
	w.Session.Close()
}

func (w *observed) enter() {
	if w.busy.Add(1) > 1 || w.closes.Load() > 0 {
		w.faults.Add(1)
	}
}

// hooked calls a hook before each Feed with a line.
type hooked struct {
	echoes
	hook func(line string)
}

func (h *hooked) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	if line, _, ok := bytes.Cut(in, []byte("\n")); ok {
		h.hook(string(line))
	}
	return h.echoes.Feed(in, out)
}

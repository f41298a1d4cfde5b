package door

import (
	"runtime"
	"sync"
	"time"
)

// frames reads ahead and gathers what is written on a connection of HTTP/2: net/http reads each frame's
// header and its payload by a system call each, and writes the header, the message and the trailer of an
// answer by another three.
type frames struct {
	buf  []byte
	next []byte // of buf, read ahead

	mu    sync.Mutex // rank 60: guards all below
	held  []byte
	timer *time.Timer // writes what is held, if no more comes
	err   error       // of an earlier write
}

const (
	aheadBytes = 4 << 10
	heldBytes  = 4 << 10
	// holdTime is long enough for the rest of an answer, and short for one that goes on later.
	holdTime = time.Millisecond
)

// preface is how a connection of HTTP/2 begins. To net/http one with another end is of HTTP/1.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// begin looks at a connection's first bytes, which may come one by one.
func (c *Conn) begin(first []byte) error {
	n := min(len(first), len(preface)-c.matched)
	if string(first[:n]) != preface[c.matched:c.matched+n] {
		c.begun = true
		return nil
	}
	if c.matched += n; c.matched < len(preface) {
		return nil
	}
	c.begun = true
	f := &frames{buf: make([]byte, aheadBytes)}
	f.timer = time.AfterFunc(time.Hour, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err == nil && len(f.held) > 0 {
			f.err = f.sendLocked(c.send)
		}
	})
	f.timer.Stop()
	c.frames, c.ledger = f, newLedger(false)
	c.hold(http2Bytes)
	return c.note(first[n:])
}

// note has the ledger read what came from the client.
func (c *Conn) note(received []byte) error {
	grown, err := c.ledger.received(received)
	c.hold(grown)
	return err
}

// read is Read by receive.
func (f *frames) read(b []byte, receive func([]byte) (int, error)) (int, error) {
	if len(f.next) == 0 {
		if len(b) >= len(f.buf) {
			return receive(b)
		}
		n, err := receive(f.buf)
		if n == 0 {
			return 0, err
		}
		f.next = f.buf[:n]
		if n == len(f.buf) { // of a flood of frames: reading and serving it hand over to each other without a pause
			runtime.Gosched()
		}
	}
	n := copy(b, f.next)
	f.next = f.next[n:]
	return n, nil
}

// write is Write by send. more says that b ends where an answer goes on.
func (f *frames) write(b []byte, more bool, send func([]byte) (int, error)) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	first := len(f.held) == 0
	if !more && first {
		n, err := send(b)
		f.err = err // the rest of b cannot follow: net/http would write it again, and the ledger has read it
		return n, err
	}
	f.held = append(f.held, b...)
	if more && len(f.held) <= heldBytes {
		if first {
			f.timer.Reset(holdTime)
		}
		return len(b), nil
	}
	f.timer.Stop()
	if f.err = f.sendLocked(send); f.err != nil {
		return 0, f.err
	}
	return len(b), nil
}

func (f *frames) sendLocked(send func([]byte) (int, error)) error {
	_, err := send(f.held)
	if f.held = f.held[:0]; cap(f.held) > 2*heldBytes {
		f.held = nil
	}
	return err
}

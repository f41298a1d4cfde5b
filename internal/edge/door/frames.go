package door

import (
	"bytes"
	"runtime"
	"sync"
	"time"
)

// frames reads ahead and gathers what is written on a connection of HTTP/2 without TLS: net/http reads each
// frame's header and its payload by a system call each, and writes the header, the message and the trailer of
// an answer by another three.
type frames struct {
	buf  []byte
	next []byte // of buf, read ahead

	mu    sync.Mutex // guards all below
	out   outgoing
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

// preface is how a connection of HTTP/2 begins, and what net/http reads first of any connection.
const preface = "PRI * HTTP/2.0"

// begin looks at a connection's first bytes.
func (c *Conn) begin(first []byte) {
	if c.begun = true; !bytes.HasPrefix(first, []byte(preface)) {
		return
	}
	f := &frames{buf: make([]byte, aheadBytes)}
	f.timer = time.AfterFunc(time.Hour, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err == nil && len(f.held) > 0 {
			f.err = f.sendLocked(c.send)
		}
	})
	f.timer.Stop()
	c.frames = f
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

// write is Write by send.
func (f *frames) write(b []byte, send func([]byte) (int, error)) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	more := f.out.feed(b)
	first := len(f.held) == 0
	if !more && first {
		n, err := send(b)
		f.err = err // the rest of b cannot follow: net/http would write it again, and feed has read it
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

// outgoing follows the frames that are written.
type outgoing struct {
	header [9]byte
	known  int  // bytes of the header
	skip   int  // missing bytes of the payload
	open   bool // the frame is part of an answer, and not the last
}

// feed reads what is written next, and reports whether it ends where an answer goes on.
func (o *outgoing) feed(b []byte) (more bool) {
	const frameData, frameHeaders, endStream = 0, 1, 1
	for len(b) > 0 {
		if o.skip > 0 {
			n := min(o.skip, len(b))
			o.skip, b = o.skip-n, b[n:]
			continue
		}
		n := copy(o.header[o.known:], b)
		o.known, b = o.known+n, b[n:]
		if h := &o.header; o.known == len(h) {
			o.known, o.skip = 0, int(h[0])<<16|int(h[1])<<8|int(h[2])
			o.open = (h[3] == frameData || h[3] == frameHeaders) && h[4]&endStream == 0
		}
	}
	return o.open && o.skip == 0 && o.known == 0
}

package door

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// frame is the beginning of a frame of HTTP/2.
type frame struct {
	kind, flags byte
	stream      uint32
	length      int
	window      int // what a WINDOW_UPDATE adds
}

// Kinds and flags of frames (RFC 9113, 6):
const (
	kindData, kindHeaders, kindReset, kindGoAway, kindWindow, kindContinuation = 0, 1, 3, 7, 8, 9

	endStream = 1

	reserved = 1 << 31 // the first bit of a stream or a window
)

// parser finds the frames of one direction.
type parser struct {
	begun [13]byte // the header, and the payload of a WINDOW_UPDATE
	known int      // bytes of begun
	skip  int      // missing bytes of a payload
}

// next returns the next frame that begins in b, and what follows its beginning.
func (p *parser) next(b []byte) (f frame, rest []byte, ok bool) {
	n := min(p.skip, len(b))
	p.skip, b = p.skip-n, b[n:]
	for need := 9; len(b) > 0; {
		if h := &p.begun; p.known >= 9 && h[3] == kindWindow {
			need = 13
		}
		n := copy(p.begun[p.known:need], b)
		p.known, b = p.known+n, b[n:]
		if p.known < need {
			continue
		}
		h := &p.begun
		f = frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:]) &^ reserved, length: int(binary.BigEndian.Uint32(h[:]) >> 8)}
		if f.kind == kindWindow && f.length == 4 && need == 9 {
			continue
		}
		if need == 13 {
			f.window = int(binary.BigEndian.Uint32(h[9:]) &^ reserved)
		}
		p.skip, p.known = f.length-(need-9), 0
		return f, b, true
	}
	return frame{}, nil, false
}

// ledger follows the frames of a connection of HTTP/2 in both directions: what its server holds for it, and
// whether its client does more than ask. It is safe for one reader beside one writer.
type ledger struct {
	grpc    bool // grpc-go gives a connection's window back at once: what it holds are messages of open streams
	in, out parser
	answers bool // the last frame out is of an answer that goes on
	first   bool // an answer has ended

	mu sync.Mutex // rank 90: guards all below

	open   map[uint32]stream // whose answer has not ended
	newest uint32
	halves int  // streams of open that the client has not ended
	header int  // bytes of headers of open
	unread int  // bytes of DATA that the client's window does not have back; with grpc, those of open
	opened bool // the first WINDOW_UPDATE is out, which enlarges the window
	known  bool // the client sends what known users do; always set without grpc

	resets int // more than answers since
	idle   int // frames that ask nothing
	since  time.Time
}

// stream is what has come of an open stream.
type stream struct {
	header, data int  // bytes that are held
	ended        bool // by the client
}

const (
	// maxResets is how many more streams a client may reset than it lets be answered: all of one moment.
	maxResets = maxStreams
	// maxIdleFrames is how many frames a client may send that ask nothing. Each answer permits
	// framesAnAnswer more, as for its windows, and each second framesASecond, as for PING.
	maxIdleFrames  = 1000
	framesAnAnswer = 16
	framesASecond  = 10
	// smallDataBytes is the size below which a part of a body counts as such a frame, too.
	smallDataBytes = 256

	// http2Bytes is what net/http holds for an idle connection of HTTP/2, and streamBytes for a stream
	// beyond its header: goroutines, buffers and tables. Both were measured.
	http2Bytes  = 24 << 10
	streamBytes = 8 << 10

	// maxStrangeBytes is what a stream of gRPC may hold on a connection where nobody is known yet: its
	// window, however it is cut. For a longer message grpc-go enlarges that, whosever it is.
	maxStrangeBytes = 2 * streamWindow
)

var (
	errFlood   = errors.New("door: the client resets more streams than it lets be answered, or sends too many frames that ask nothing")
	errStrange = errors.New("door: a stranger sends a long message")
)

func newLedger(grpc bool) *ledger {
	return &ledger{grpc: grpc, open: map[uint32]stream{}, since: time.Now(), known: !grpc}
}

// know notes that a known user calls.
func (l *ledger) know() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
}

// isWhole reports whether all open streams have been ended by the client, so that their bodies are there.
func (l *ledger) isWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halves == 0
}

func (l *ledger) heldLocked() int { return len(l.open)*streamBytes + l.header + l.unread }

// received reads what comes from the client, and returns by how much more is held. An error ends the
// connection.
func (l *ledger) received(b []byte) (grown int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.heldLocked()
	for {
		f, rest, ok := l.in.next(b)
		if !ok {
			return l.heldLocked() - before, nil
		}
		if b = rest; !l.noteLocked(f) && l.floodsLocked() {
			return l.heldLocked() - before, errFlood
		}
		if !l.known && l.open[f.stream].data > maxStrangeBytes {
			return l.heldLocked() - before, errStrange
		}
	}
}

// floodsLocked counts a frame that asks nothing, and reports whether there are too many.
func (l *ledger) floodsLocked() bool {
	if l.idle++; l.idle > maxIdleFrames {
		now := time.Now()
		l.idle -= int(min(now.Sub(l.since)/(time.Second/framesASecond), maxIdleFrames))
		l.since = now
	}
	return l.idle > maxIdleFrames || l.resets > maxResets
}

// noteLocked reports whether a frame asks something.
func (l *ledger) noteLocked(f frame) (asks bool) {
	s, open := l.open[f.stream]
	switch {
	case f.kind == kindHeaders && f.stream > l.newest:
		l.newest = f.stream
		l.halves++
		l.putLocked(f, stream{header: f.length})
		l.header += f.length
		return true
	case f.kind == kindHeaders && open: // trailers
		l.putLocked(f, s)
	case f.kind == kindReset && open:
		l.resets++
		l.closeLocked(f.stream)
	case f.kind == kindData:
		held := f.length
		if l.grpc {
			held = pooledBytes(f.length)
		}
		if open {
			s.data += held
			l.putLocked(f, s)
		}
		if open || !l.grpc {
			l.unread += held
		}
		return open && (f.length >= smallDataBytes || f.flags&endStream != 0)
	case f.kind == kindContinuation && open:
		s.header += f.length
		l.open[f.stream] = s
		l.header += f.length
	}
	return false
}

// pooledBytes returns what grpc-go's pool gives for a part of a message.
func pooledBytes(length int) int {
	for _, size := range []int{256, 4 << 10} {
		if length <= size {
			return size
		}
	}
	return 16 << 10
}

// putLocked puts what is known of a stream after a frame of the client.
func (l *ledger) putLocked(f frame, s stream) {
	if f.flags&endStream != 0 && !s.ended {
		s.ended = true
		l.halves--
	}
	l.open[f.stream] = s
}

func (l *ledger) closeLocked(id uint32) {
	s := l.open[id]
	l.header -= s.header
	if l.grpc {
		l.unread -= s.data
	}
	if !s.ended {
		l.halves--
	}
	delete(l.open, id)
}

// sent reads what goes to the client. It reports whether it ends where an answer goes on, and by how much
// more is held.
func (l *ledger) sent(b []byte) (more bool, grown int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.heldLocked()
	for {
		f, rest, ok := l.out.next(b)
		if !ok {
			return l.answers && l.out.skip == 0 && l.out.known == 0, l.heldLocked() - before
		}
		b = rest
		answer := f.kind == kindData || f.kind == kindHeaders
		l.answers = answer && f.flags&endStream == 0
		switch _, open := l.open[f.stream]; {
		case f.kind == kindWindow && f.stream == 0:
			if l.opened && !l.grpc {
				l.unread = max(0, l.unread-f.window)
			}
			l.opened = true
		case !open:
		case answer && !l.answers:
			l.closeLocked(f.stream)
			l.first = true
			l.resets, l.idle = max(0, l.resets-1), max(0, l.idle-framesAnAnswer)
		case f.kind == kindReset:
			l.closeLocked(f.stream)
		}
	}
}

// goAway returns a frame that ends the connection, or nil unless an answer has ended and no frame out has
// begun.
func (l *ledger) goAway() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.first || l.out.skip > 0 || l.out.known > 0 {
		return nil
	}
	b := []byte{0, 0, 8, kindGoAway, 0, 0, 0, 0, 0} // its payload is the last stream and no error
	return append(binary.BigEndian.AppendUint32(b, l.newest), 0, 0, 0, 0)
}

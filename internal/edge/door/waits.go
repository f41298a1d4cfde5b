package door

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// waits holds the requests that wait for the rest of their body, in their order, by host. Beyond a host's
// maximum the one that has waited longest ends, so that nobody keeps others from sending theirs. The zero
// value is empty.
type waits struct {
	mu    sync.Mutex // rank 90: guards all below, and the links of bodies
	hosts map[string]*line
}

// line is the bodies of a host, the one that has waited longest first.
type line struct {
	first, last *body
	n           int
}

// body is a request's body. It belongs to the request's goroutine but for its links.
type body struct {
	io.ReadCloser
	conn   *Conn
	answer http.ResponseWriter
	left   int64 // bytes that may be read
	begun  bool
	ended  bool // all of it is read, or no more can be
	read   int  // bytes that are held

	line       *line // nil unless it waits
	prev, next *body
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.conn.door.waits.join(b, b.conn.door.mostWaits())
	}
	n, err := b.ReadCloser.Read(to)
	if b.left -= int64(n); b.left < 0 {
		n, err = 0, errLongBody
	}
	if b.conn.frames != nil { // of HTTP/1 what is received counts
		b.read += n
		b.conn.hold(n)
	}
	if err != nil {
		b.ended = true
		b.conn.door.waits.leave(b)
	}
	return n, err
}

var errLongBody = errors.New("the body is too long")

// BoundBody bounds what can be read of a request's body.
func BoundBody(r *http.Request, maxBytes int64) {
	if b, ok := r.Body.(*body); ok {
		b.left = maxBytes
	}
}

// LeavesBody reports whether the body of a request of HTTP/1 is not read. Unless the answer then closes the
// connection, net/http waits for the body before it sends the answer.
func LeavesBody(r *http.Request) bool {
	b, ok := r.Body.(*body)
	return ok && !b.ended && r.ProtoMajor == 1
}

// end is called when the request is answered.
func (b *body) end() {
	b.conn.door.waits.leave(b)
	b.conn.hold(-b.read)
}

// join adds a body that has not waited before.
func (w *waits) join(b *body, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.hosts[b.conn.host]
	if l == nil {
		if w.hosts == nil {
			w.hosts = map[string]*line{}
		}
		l = &line{}
		w.hosts[b.conn.host] = l
	}
	b.line, b.prev = l, l.last
	if l.last == nil {
		l.first = b
	} else {
		l.last.next = b
	}
	l.last = b
	if l.n++; l.n > most {
		longest := l.first
		w.leaveLocked(longest)
		// under the lock, for which its end waits: net/http forgets a request that has ended
		_ = http.NewResponseController(longest.answer).SetReadDeadline(time.Unix(1, 0))
	}
}

func (w *waits) leave(b *body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(b)
}

func (w *waits) leaveLocked(b *body) {
	l := b.line
	if l == nil {
		return
	}
	if b.prev == nil {
		l.first = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		l.last = b.prev
	} else {
		b.next.prev = b.prev
	}
	b.line, b.prev, b.next = nil, nil, nil
	if l.n--; l.n == 0 {
		delete(w.hosts, b.conn.host)
	}
}

// pauses are the answers to strangers that are under way, apart from the requests of known users. The zero
// value has none.
type pauses struct {
	mu    sync.Mutex // rank 90: guards all below
	hosts map[string]int
	all   int
}

// Answers to wrong tokens that wait at once, in all and of a host; further ones do not wait.
const (
	maxPauses       = 64
	maxPausesOfHost = 16
)

// take returns false if too many wait.
func (p *pauses) take(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxPauses || p.hosts[host] >= maxPausesOfHost {
		return false
	}
	if p.hosts == nil {
		p.hosts = map[string]int{}
	}
	p.hosts[host]++
	p.all++
	return true
}

// leave undoes take.
func (p *pauses) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.hosts[host]--; p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
}

package door

import (
	"container/list"
	"io"
	"net/http"
	"sync"
	"time"
)

// waits holds the requests that wait for the rest of their body, by host, the one that has waited longest
// first. Beyond a host's maximum that one ends, so that nobody keeps others from sending theirs. The zero
// value is empty.
type waits struct {
	mu    sync.Mutex // rank 90: guards all below, and the places of waiting requests
	hosts map[string]*list.List
}

// wait is a request that may wait for its body.
type wait struct {
	host  string
	end   func()        // ends it
	place *list.Element // among the waiting ones; nil unless it waits
}

// body is a request's body. It belongs to the request's goroutine but for its place.
type body struct {
	io.ReadCloser
	conn   *Conn
	answer http.ResponseWriter
	begun  bool
	ended  bool // all of it is read, or no more can be
	read   int  // bytes that are held
	wait   wait
}

func (b *body) Read(to []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.wait = wait{host: b.conn.host, end: b.giveUp}
		b.conn.door.waits.join(&b.wait, b.conn.door.mostWaits())
	}
	n, err := b.ReadCloser.Read(to)
	if b.conn.frames != nil { // of HTTP/1 what is received counts
		b.read += n
		b.conn.hold(n)
	}
	if err != nil {
		b.ended = true
		b.conn.door.waits.leave(&b.wait)
	}
	return n, err
}

// giveUp ends the request. net/http forgets one that has ended.
func (b *body) giveUp() { _ = http.NewResponseController(b.answer).SetReadDeadline(time.Unix(1, 0)) }

// LeavesBody reports whether the body of a request of HTTP/1 is not read. Unless the answer then closes the
// connection, net/http waits for the body before it sends the answer.
func LeavesBody(r *http.Request) bool {
	b, ok := r.Body.(*body)
	return ok && !b.ended && r.ProtoMajor == 1
}

// end is called when the request is answered.
func (b *body) end() {
	b.conn.door.waits.leave(&b.wait)
	b.conn.hold(-b.read)
}

// join adds a request that has not waited before.
func (w *waits) join(one *wait, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.hosts[one.host]
	if l == nil {
		if w.hosts == nil {
			w.hosts = map[string]*list.List{}
		}
		l = list.New()
		w.hosts[one.host] = l
	}
	one.place = l.PushBack(one)
	if l.Len() > most {
		longest := l.Front().Value.(*wait)
		w.leaveLocked(longest)
		longest.end() // under the lock, for which its own leave waits
	}
}

func (w *waits) leave(one *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(one)
}

func (w *waits) leaveLocked(one *wait) {
	if one.place == nil {
		return
	}
	l := w.hosts[one.host]
	l.Remove(one.place)
	one.place = nil
	if l.Len() == 0 {
		delete(w.hosts, one.host)
	}
}

// Answers to wrong tokens that wait at once, in all and of a host; further ones do not wait.
const (
	maxPauses       = 64
	maxPausesOfHost = 16
)

package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
)

// output sends replies. It writes as long as the client takes them and queues the rest, which a goroutine
// writes until the queue is empty. The connection is read on meanwhile, as clients write whole pipelines
// before they read.
type output struct {
	nc   net.Conn
	pool *buffers.Pool
	now  nonblocking   // used by the connection's goroutine while the queue is empty
	sent atomic.Uint64 // bytes

	mu      sync.Mutex // rank 60: guards all below
	queue   buffers.Queue
	writing bool // the goroutine runs
	err     error
	changed chan struct{}   // holds one notice of a change above
	report  func(bytes int) // reports the memory of the queue; nil at first
}

func newOutput(nc net.Conn, pool *buffers.Pool) *output {
	return &output{nc: nc, pool: pool, now: newNonblocking(nc), changed: make(chan struct{}, 1)}
}

// send sends or queues b without keeping it, and returns the number of pending bytes.
func (o *output) send(b []byte) (pending int, err error) {
	o.mu.Lock()
	writing, err := o.writing, o.err
	o.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if !writing {
		n, err := o.now.write(b)
		o.sent.Add(uint64(n))
		if err != nil || n == len(b) {
			return 0, err
		}
		b = b[n:]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue.Add(o.pool, b)
	o.reportLocked()
	if !o.writing {
		o.writing = true
		go o.writeQueue()
	}
	return o.queue.Len(), nil
}

func (o *output) writeQueue() {
	for b := o.next(); len(b) > 0; b = o.next() {
		n, err := o.nc.Write(b)
		o.sent.Add(uint64(n))
		o.wrote(n, err)
		if err != nil {
			return
		}
	}
}

// next returns the front of the queue, behind which bytes may be added meanwhile. If it is empty, the
// goroutine ends.
func (o *output) next() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.queue.Front()
	o.writing = len(b) > 0
	o.notify()
	return b
}

func (o *output) wrote(n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.queue.Clear(o.pool)
		o.writing, o.err = false, err
	} else {
		o.queue.Take(o.pool, n)
	}
	o.reportLocked()
	o.notify()
}

func (o *output) reportLocked() {
	if o.report != nil {
		o.report(o.queue.Held())
	}
}

// reportTo sets the function that is told the memory of the queue.
func (o *output) reportTo(report func(bytes int)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report = report
	if o.queue.Len() > 0 {
		o.reportLocked()
	}
}

func (o *output) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// await waits until at most maxBytes are pending. It returns false after the timeout, if it is not 0, or if
// the connection is broken.
func (o *output) await(maxBytes int, timeout time.Duration) bool {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	for {
		o.mu.Lock()
		pending, err := o.queue.Len(), o.err
		o.mu.Unlock()
		if err != nil || pending <= maxBytes {
			return err == nil
		}
		select {
		case <-o.changed:
		case <-expired:
			return false
		}
	}
}

func (o *output) broken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// wait waits until the goroutine has ended, soon after the connection was closed.
func (o *output) wait() {
	for {
		o.mu.Lock()
		writing := o.writing
		o.mu.Unlock()
		if !writing {
			return
		}
		<-o.changed
	}
}

package goroutines

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
)

// output sends a connection's replies. It writes them at once for as long as the client takes them; what the
// client does not take is queued, and a goroutine that lives until the queue is empty writes it, so that the
// connection can be read on meanwhile: clients write whole pipelines before they read.
type output struct {
	nc   net.Conn
	pool *buffers.Pool
	now  nonblocking   // used by the connection's goroutine, while nothing is queued
	sent atomic.Uint64 // bytes

	mu      sync.Mutex // guards all below
	queue   buffers.Queue
	writing bool // whether the goroutine runs
	err     error
	changed chan struct{} // holds one notice that something of the above changed
	holds   func(int)     // is told how much memory the queue takes, when that has changed; nil for nobody
}

func newOutput(nc net.Conn, pool *buffers.Pool) *output {
	return &output{nc: nc, pool: pool, now: newNonblocking(nc), changed: make(chan struct{}, 1)}
}

// send sends or queues b, which it does not keep, and returns how much is pending.
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
	o.tellHeldLocked()
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

// next returns what is to be written next; if that is nothing, the goroutine ends. Bytes may be added behind them
// meanwhile.
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
	o.tellHeldLocked()
	o.notify()
}

func (o *output) tellHeldLocked() {
	if o.holds != nil {
		o.holds(o.queue.Held())
	}
}

// tell has holds told what the queue takes from now on.
func (o *output) tell(holds func(int)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = holds
	if o.queue.Len() > 0 {
		o.tellHeldLocked()
	}
}

func (o *output) notify() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// await waits until no more than most bytes are pending. It is false if that takes longer than the timeout, which
// 0 makes endless, or if the connection is broken.
func (o *output) await(most int, timeout time.Duration) bool {
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
		if err != nil || pending <= most {
			return err == nil
		}
		select {
		case <-o.changed:
		case <-expired:
			return false
		}
	}
}

// broken reports whether nothing can be sent any more.
func (o *output) broken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// wait waits until the goroutine has ended, which it does soon after the connection was closed.
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

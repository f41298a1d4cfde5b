package server

import (
	"net"
	"sync"
	"time"
)

// output sends a connection's replies. It writes them at once for as long as the client takes them; what the
// client does not take is queued, and a goroutine that lives until the queue is empty writes it, so that the
// connection can be read on meanwhile: clients write whole pipelines before they read.
type output struct {
	nc  net.Conn
	now nonblocking // used by the connection's goroutine, while nothing is queued

	mu      sync.Mutex // guards all below
	queue   [][]byte   // what the goroutine has not taken yet, in blocks
	pending int        // bytes that it has not written, taken or not
	writing bool       // whether it runs
	err     error
	changed chan struct{} // holds one notice that something of the above changed
}

// blockBytes is how much is queued in one piece, and written between two looks at what is pending.
const blockBytes = 64 << 10

func newOutput(nc net.Conn) *output {
	return &output{nc: nc, now: newNonblocking(nc), changed: make(chan struct{}, 1)}
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
		if err != nil || n == len(b) {
			return 0, err
		}
		b = b[n:]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.enqueueLocked(b)
	if !o.writing {
		o.writing = true
		go o.writeQueue()
	}
	return o.pending, nil
}

// enqueueLocked copies b into blocks. One long buffer would be copied again each time it grows.
func (o *output) enqueueLocked(b []byte) {
	o.pending += len(b)
	for len(b) > 0 {
		last := len(o.queue) - 1
		if last < 0 || len(o.queue[last]) == cap(o.queue[last]) {
			o.queue = append(o.queue, make([]byte, 0, blockBytes))
			last++
		}
		block := o.queue[last]
		n := min(len(b), cap(block)-len(block))
		o.queue[last] = append(block, b[:n]...)
		b = b[n:]
	}
}

func (o *output) writeQueue() {
	for blocks := o.take(); len(blocks) > 0; blocks = o.take() {
		for i, block := range blocks {
			n, err := o.nc.Write(block)
			blocks[i] = nil // a slow client may take long for the rest
			o.wrote(n, err)
			if err != nil {
				return
			}
		}
	}
}

// take returns what is queued; if that is nothing, the goroutine ends.
func (o *output) take() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	blocks := o.queue
	o.queue, o.writing = nil, len(blocks) > 0
	o.notify()
	return blocks
}

func (o *output) wrote(n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending -= n
	if err != nil {
		o.queue, o.pending, o.writing, o.err = nil, 0, false, err
	}
	o.notify()
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
		pending, err := o.pending, o.err
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

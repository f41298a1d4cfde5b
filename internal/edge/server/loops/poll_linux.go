package loops

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// poller is an epoll instance, with an eventfd that ends its wait.
type poller struct {
	epoll, wakeup int
	events        [256]unix.EpollEvent
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("server: start event loop: %w", os.NewSyscallError("epoll_create1", err))
	}
	wakeup, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, fmt.Errorf("server: start event loop: %w", os.NewSyscallError("eventfd", err))
	}
	p := &poller{epoll: epoll, wakeup: wakeup}
	if err := p.control(unix.EPOLL_CTL_ADD, wakeup, unix.EPOLLIN); err != nil {
		p.close()
		return nil, fmt.Errorf("server: start event loop: %w", err)
	}
	return p, nil
}

func (p *poller) close() {
	_ = unix.Close(p.epoll)
	_ = unix.Close(p.wakeup)
}

func (p *poller) control(op, fd int, interest uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: interest, Fd: int32(fd)}))
}

// wait returns what is ready. It waits for that at most timeoutMs, and without end if that is negative.
func (p *poller) wait(timeoutMs int) []unix.EpollEvent {
	n, err := unix.EpollWait(p.epoll, p.events[:], timeoutMs)
	if err != nil { // EINTR: the loop comes around
		return nil
	}
	return p.events[:n]
}

// inbox is how other goroutines reach a loop.
type inbox struct {
	mu      sync.Mutex // guards all below
	wakeup  int        // an eventfd
	added   []*connection
	woken   []*connection
	killed  []*connection
	evicted []*connection
	probes  []chan<- struct{} // that the loop closes
	limited bool              // the limits have changed
	drained bool
	ended   bool // all that is left is to be closed
	rung    bool // the loop will look
	closed  bool // the loop has ended
}

// add is false if the loop takes no more connections.
func (b *inbox) add(c *connection) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained || b.closed {
		return false
	}
	b.added = append(b.added, c)
	b.ringLocked()
	return true
}

func (b *inbox) wake(c *connection) { b.put(&b.woken, c) }

func (b *inbox) kill(c *connection) { b.put(&b.killed, c) }

func (b *inbox) evict(c *connection) { b.put(&b.evicted, c) }

func (b *inbox) put(list *[]*connection, c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed { // or nobody would ever take it
		*list = append(*list, c)
		b.ringLocked()
	}
}

func (b *inbox) limitsChanged() { b.raise(&b.limited) }

func (b *inbox) drain() { b.raise(&b.drained) }

func (b *inbox) end() { b.raise(&b.ended) }

func (b *inbox) raise(flag *bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*flag = true
	b.ringLocked()
}

func (b *inbox) ringLocked() {
	if b.rung || b.closed {
		return
	}
	b.rung = true
	one := [8]byte{0: 1, 7: 1} // not 0 in either order of bytes
	_, _ = unix.Write(b.wakeup, one[:])
}

// mail is what stood in an inbox.
type mail struct {
	added, woken, killed []*connection
	probes               []chan<- struct{}
	limited              bool
	drained, ended       bool
}

func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung {
		var count [8]byte
		_, _ = unix.Read(b.wakeup, count[:])
		b.rung = false
	}
	m := mail{b.added, b.woken, b.killed, b.probes, b.limited, b.drained, b.ended}
	b.added, b.woken, b.killed, b.probes, b.limited = nil, nil, nil, nil, false
	return m
}

// takeEvicted takes the connections that are to be closed for their memory, whose turn does not wait for the rest.
func (b *inbox) takeEvicted() []*connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	evicted := b.evicted
	b.evicted = nil
	return evicted
}

// close says that nobody looks any more, unless a connection has come in since.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.added) == 0
	return b.closed
}

// isClosed reports whether the loop has ended.
func (b *inbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// readOnce reads what there is; again is true if that is nothing yet.
func readOnce(fd int, buf []byte) (n int, again bool, err error) {
	for {
		n, err = unix.Read(fd, buf)
		switch {
		case err == nil:
			return n, false, nil
		case errors.Is(err, unix.EAGAIN):
			return 0, true, nil
		case !errors.Is(err, unix.EINTR):
			return 0, false, err
		}
	}
}

package loops

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// poller is an epoll instance with an eventfd that interrupts its wait.
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

// wait returns ready events after at most timeoutMs; negative is forever.
func (p *poller) wait(timeoutMs int) []unix.EpollEvent {
	n, err := unix.EpollWait(p.epoll, p.events[:], timeoutMs)
	if err != nil { // EINTR: the loop comes around
		return nil
	}
	return p.events[:n]
}

// inbox carries messages of other goroutines to a loop.
type inbox struct {
	mu     sync.Mutex // rank 85: guards all below
	wakeup int        // an eventfd
	mail
	evicted []*connection
	rung    bool // the loop is about to read
	closed  bool // the loop has ended
}

// mail is the content of a loop's inbox, taken at once.
type mail struct {
	added, woken, killed []*connection
	probes               []chan<- struct{} // to close
	limited              bool              // the limits have changed
	drained              bool              // finish and take no more connections; stays set
	ended                bool              // close what is left; stays set
}

// add returns false if the loop takes no more connections.
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

func (b *inbox) put(list *[]*connection, c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed { // else nobody would take it
		*list = append(*list, c)
		b.ringLocked()
	}
}

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
	one := [8]byte{0: 1, 7: 1} // not 0 in either byte order
	_, _ = unix.Write(b.wakeup, one[:])
}

func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung {
		var count [8]byte
		_, _ = unix.Read(b.wakeup, count[:])
		b.rung = false
	}
	m := b.mail
	b.mail = mail{drained: m.drained, ended: m.ended}
	return m
}

// probe makes the loop close answer when it comes around, unless it has ended.
func (b *inbox) probe(answer chan<- struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probes = append(b.probes, answer)
	b.ringLocked()
}

// takeEvicted takes the evicted connections, which do not wait for the rest of the mail.
func (b *inbox) takeEvicted() []*connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	evicted := b.evicted
	b.evicted = nil
	return evicted
}

// close marks the loop as ended, unless a connection was added since.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.added) == 0
	return b.closed
}

func (b *inbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

package server

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
	evicted []*loopConn
	rung    bool // the loop is about to read
}

// mail is the content of a loop's inbox, taken at once.
type mail struct {
	added, woken, killed []*loopConn
	probes               []chan<- struct{} // to close when the loop comes around
	limited              bool              // the limits have changed
	stage                stage
}

// stage is how far a loop's end has come. It only rises.
type stage uint8

const (
	stageServing  stage = iota
	stageDraining       // it finishes and takes no more connections
	stageEnding         // it closes what is left
	stageEnded
)

// add returns false if the loop takes no more connections.
func (b *inbox) add(c *loopConn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stage != stageServing {
		return false
	}
	b.added = append(b.added, c)
	b.ringLocked()
	return true
}

func (b *inbox) put(list *[]*loopConn, c *loopConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stage != stageEnded { // else nobody would take it
		*list = append(*list, c)
		b.ringLocked()
	}
}

// post changes the mail and has the loop read it.
func (b *inbox) post(change func(m *mail)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.mail)
	b.ringLocked()
}

func (b *inbox) ringLocked() {
	if b.rung || b.stage == stageEnded {
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
	b.mail = mail{stage: m.stage}
	return m
}

// takeEvicted takes the evicted connections, which do not wait for the rest of the mail.
func (b *inbox) takeEvicted() []*loopConn {
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
	if len(b.added) > 0 {
		return false
	}
	b.stage = stageEnded
	return true
}

func (b *inbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stage == stageEnded
}

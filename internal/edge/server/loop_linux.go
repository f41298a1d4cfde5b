package server

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// loop serves its connections from one goroutine, to which everything belongs but the inbox and the atomics.
type loop struct {
	server *Server
	nowNs  func() int64
	poll   *poller
	inbox  inbox
	load   atomic.Int64 // connections, to choose the least loaded loop
	evicts atomic.Bool  // the inbox has evicted connections
	// traffic as others see it, updated each round
	received, sent atomic.Uint64

	conns    []*loopConn // by descriptor
	open     int         // number of conns
	ready    []*loopConn // connections with input that the poller does not report
	timers   timers
	draining bool // the inbox's stage says so, and the connections know

	traffic traffic // of all connections, past and present

	yieldedNs int64
	in        []byte // read buffer of connections without one of their own
	out       []byte // replies, until they are written or queued
}

// loopInputBytes bounds a read, so that a client that sends without end leaves the others their turns.
const loopInputBytes = 64 << 10

func newLoop(s *Server) (*loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	return &loop{
		server: s,
		nowNs:  s.config.Now,
		poll:   p,
		inbox:  inbox{wakeup: p.wakeup},
		in:     make([]byte, loopInputBytes),
	}, nil
}

func (l *loop) run() {
	defer l.poll.close()
	for !l.draining || l.open > 0 || !l.inbox.close() {
		for _, e := range l.poll.wait(l.timeoutMs()) {
			if fd := int(e.Fd); fd == l.poll.wakeup {
				l.readInbox()
			} else if c := l.conns[fd]; c != nil {
				c.guarded(e.Events, (*loopConn).handleEvents)
				l.closeEvicted()
			}
		}
		l.processReady()
		nowNs := l.nowNs()
		for c := l.timers.take(nowNs); c != nil; c = l.timers.take(nowNs) {
			c.guarded(0, (*loopConn).expired)
		}
		l.publish()
		l.yield(nowNs)
	}
}

// publish updates the traffic that others see: once a round, as it takes a locked instruction or two.
func (l *loop) publish() {
	if l.received.Load() != l.traffic.received {
		l.received.Store(l.traffic.received)
	}
	if l.sent.Load() != l.traffic.sent {
		l.sent.Store(l.traffic.sent)
	}
}

// yieldNs is a little less than the 10 ms after which the runtime's monitor retakes a processor.
const yieldNs = 8_000_000

// yield runs the scheduler now and then. A loop waits only in system calls, so to the runtime it is one
// goroutine that never stops: its monitor would then come every 20 us to take the processor, which costs a
// tenth of all CPU time under load and half of it when there is little to do.
func (l *loop) yield(nowNs int64) {
	if nowNs-l.yieldedNs >= yieldNs {
		l.yieldedNs = nowNs
		runtime.Gosched()
	}
}

// maxWait bounds a wait: the system counts milliseconds in 32 bits.
const maxWait = time.Hour

// timeoutMs returns how long the loop may wait; -1 is forever.
func (l *loop) timeoutMs() int {
	switch {
	case len(l.ready) > 0:
		return 0
	case len(l.timers) == 0:
		return -1
	}
	left := min(time.Duration(l.timers[0].timerNs-l.nowNs()), maxWait)
	return int(max(0, (left+time.Millisecond-1)/time.Millisecond))
}

func (l *loop) readInbox() {
	m := l.inbox.take()
	for _, c := range m.added {
		l.open++
		for len(l.conns) <= int(c.fd) {
			l.conns = append(l.conns, nil)
		}
		l.conns[c.fd] = c
		c.guarded(0, (*loopConn).start)
	}
	for _, c := range m.woken {
		c.guarded(0, (*loopConn).woken)
	}
	for _, c := range m.killed {
		c.closeFor(ReasonKilled)
	}
	l.takeEvicted() // regardless of evicts, which is set after the inbox is rung
	if m.limited {
		l.each((*loopConn).limitsChanged)
	}
	for _, answer := range m.probes {
		close(answer)
	}
	if m.stage != stageServing && !l.draining {
		l.draining = true
		l.each((*loopConn).drain)
	}
	if m.stage == stageEnding {
		l.each(func(c *loopConn, _ uint32) { c.closeFor(ReasonShutdown) })
	}
}

// closeEvicted closes evicted connections. It is called after each turn of another: in one round all
// connections may grow, and evicted ones no longer count although they hold their memory.
func (l *loop) closeEvicted() {
	if l.evicts.Load() {
		l.evicts.Store(false) // first, else one added meanwhile would wait
		l.takeEvicted()
	}
}

func (l *loop) takeEvicted() {
	for _, c := range l.inbox.takeEvicted() {
		c.closeFor(ReasonMemory)
	}
}

func (l *loop) each(do func(c *loopConn, _ uint32)) {
	for _, c := range l.conns {
		if c != nil {
			c.guarded(0, do)
		}
	}
}

// processReady gives one more turn to each connection that has input left.
func (l *loop) processReady() {
	turn := l.ready
	l.ready = nil
	for _, c := range turn {
		c.guarded(0, (*loopConn).runTurn)
		l.closeEvicted()
	}
	if l.ready == nil {
		clear(turn)
		l.ready = turn[:0]
	}
}

func (l *loop) forget(c *loopConn) {
	l.conns[c.fd] = nil
	l.open--
	l.load.Add(-1)
	l.timers.remove(c)
	_ = unix.Close(int(c.fd)) // removes it from the poller
}

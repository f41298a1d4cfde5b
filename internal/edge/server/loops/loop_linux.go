package loops

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/edge/server/conn"
)

// loop serves its connections from one goroutine: all of loop and of its connections belongs to that, but for the
// inbox and the atomics.
type loop struct {
	host   *conn.Host
	nowNs  func() int64
	poll   *poller
	inbox  inbox
	load   atomic.Int64 // connections, for whoever chooses a loop
	evicts atomic.Bool  // the inbox has connections that are to be closed for their memory
	// what others may see of traffic, up to the last round
	received, sent atomic.Uint64

	conns    []*connection // by descriptor
	open     int           // how many of them there are
	ready    []*connection // that have input to process, beyond what the poller knows
	timers   timers
	draining bool

	traffic conn.Traffic // of all connections that there were

	yieldedNs int64
	in        []byte // what a connection without a buffer of its own is read into
	out       []byte // a connection's replies, until they are written or queued
}

// loopInputBytes is what a connection is read for at a time, so that one that sends without end has its turn like
// the others.
const loopInputBytes = 64 << 10

func newLoop(h *conn.Host) (*loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	return &loop{
		host:  h,
		nowNs: h.Now,
		poll:  p,
		inbox: inbox{wakeup: p.wakeup},
		in:    make([]byte, loopInputBytes),
	}, nil
}

func (l *loop) run() {
	defer l.poll.close()
	for !l.draining || l.open > 0 || !l.inbox.close() {
		for _, e := range l.poll.wait(l.timeoutMs()) {
			if fd := int(e.Fd); fd == l.poll.wakeup {
				l.readInbox()
			} else if c := l.conns[fd]; c != nil {
				c.guarded(e.Events, (*connection).happened)
				l.closeEvicted()
			}
		}
		l.processReady()
		nowNs := l.nowNs()
		for c := l.timers.take(nowNs); c != nil; c = l.timers.take(nowNs) {
			c.expired()
		}
		l.publish()
		l.yield(nowNs)
	}
}

// publish has others see what was moved: once a round, as it takes a locked instruction or two.
func (l *loop) publish() {
	if l.received.Load() != l.traffic.Received {
		l.received.Store(l.traffic.Received)
	}
	if l.sent.Load() != l.traffic.Sent {
		l.sent.Store(l.traffic.Sent)
	}
}

// yieldNs is a little less than the 10 ms after which the runtime's monitor takes a goroutine's processor away.
const yieldNs = 8_000_000

// yield lets the scheduler have a look now and then. All a loop's waiting is in system calls, so that to the runtime
// it would be one goroutine that runs without end: its monitor would then come every 20 us to take the loop's
// processor, which costs a tenth of all CPU time under load and half of it when there is little to do.
func (l *loop) yield(nowNs int64) {
	if nowNs-l.yieldedNs >= yieldNs {
		l.yieldedNs = nowNs
		runtime.Gosched()
	}
}

// maxWait is how long a loop waits at most: the system counts the milliseconds in 32 bits.
const maxWait = time.Hour

// timeoutMs is how long the loop may wait.
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
		c.guarded(0, (*connection).start)
	}
	for _, c := range m.woken {
		c.guarded(0, (*connection).woken)
	}
	for _, c := range m.killed {
		c.closeFor(conn.ReasonKilled)
	}
	l.takeEvicted() // whatever evicts says, which is set after the inbox was rung
	if m.limited {
		l.each((*connection).limitsChanged)
	}
	for _, answer := range m.probes {
		close(answer)
	}
	if m.drained && !l.draining {
		l.draining = true
		l.each((*connection).drain)
	}
	if m.ended {
		l.each(func(c *connection, _ uint32) { c.closeFor(conn.ReasonShutdown) })
	}
}

// closeEvicted closes the connections that are to be closed for their memory. It is called after each turn of another: in
// one round all connections may grow, and what those hold that are not closed yet is counted no more.
func (l *loop) closeEvicted() {
	if l.evicts.Load() {
		l.evicts.Store(false) // first, or one that comes in now would wait
		l.takeEvicted()
	}
}

func (l *loop) takeEvicted() {
	for _, c := range l.inbox.takeEvicted() {
		c.closeFor(conn.ReasonMemory)
	}
}

// each calls do for every connection.
func (l *loop) each(do func(c *connection, _ uint32)) {
	for _, c := range l.conns {
		if c != nil {
			c.guarded(0, do)
		}
	}
}

// processReady gives each connection that has input left one more turn.
func (l *loop) processReady() {
	turn := l.ready
	l.ready = nil
	for _, c := range turn {
		c.guarded(0, (*connection).goOn)
		l.closeEvicted()
	}
	if l.ready == nil {
		clear(turn)
		l.ready = turn[:0]
	}
}

func (l *loop) forget(c *connection) {
	l.conns[c.fd] = nil
	l.open--
	l.load.Add(-1)
	l.timers.remove(c)
	_ = unix.Close(int(c.fd)) // which takes it out of the poller
	l.host.Release(c.peer)
}

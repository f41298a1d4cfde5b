package load

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// worker is a thread with its connections and its poller.
type worker struct {
	config  *Config
	thread  int
	epoll   int
	timer   int // wakes the open loop when a batch is due
	conns   []*conn
	events  []unix.EpollEvent
	read    []byte
	sampler sampler

	// Of the current run.
	begin   time.Time
	stop    *atomic.Bool
	open    *schedule // nil in a closed loop
	budget  int       // batches that may still begin; -1 if only the time limits them
	endNs   int64     // when no more batches begin; 0 if the budget limits them
	active  int       // replies expected on all connections
	heardNs int64     // when the last reply arrived
	out     outcome
}

// outcome is the measurement of a worker.
type outcome struct {
	counted      counted
	end          time.Time
	latency, lag *hdrhistogram.Histogram
	err          error
}

var errStopped = errors.New("stopped")

const (
	readBytes = 128 << 10
	maxEvents = 512
	// wakeMs is the interval at which a waiting worker checks whether it should stop.
	wakeMs = 100
)

func newWorker(config *Config, thread int) (*worker, error) {
	w := &worker{
		config:  config,
		thread:  thread,
		epoll:   -1,
		timer:   -1,
		events:  make([]unix.EpollEvent, maxEvents),
		read:    make([]byte, readBytes),
		sampler: config.Keys.sampler(thread, config.Threads),
	}
	if err := w.connect(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *worker) connect() (err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("load: poller: %w", err)
	}
	if w.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("load: timer: %w", err)
	}
	if err := w.register(w.timer, -1, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return err
	}
	for i := w.thread; i < w.config.Conns; i += w.config.Threads {
		c, err := dial(w.config.Addr, &w.config.Command, w.config.Pipeline)
		if err != nil {
			return err
		}
		c.index = len(w.conns)
		w.conns = append(w.conns, c)
		if err := w.register(c.fd, c.index, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLET); err != nil {
			return err
		}
	}
	return nil
}

// register adds a descriptor to the poller; its events carry the index.
func (w *worker) register(fd, index int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(index)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("load: poller: %w", err)
	}
	return nil
}

func (w *worker) close() {
	for _, c := range w.conns {
		c.close()
	}
	for _, fd := range []int{w.timer, w.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// run executes this thread's part of the plan.
func (w *worker) run(plan Plan, begin time.Time, stop *atomic.Bool) outcome {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.begin, w.stop = begin, stop
	w.out = outcome{latency: newHistogram(), lag: newHistogram()}
	w.prepare(plan)
	w.out.err = w.loop()
	w.out.end = time.Now()
	return w.out
}

// prepare divides the plan among threads and connections.
func (w *worker) prepare(plan Plan) {
	w.active, w.heardNs, w.endNs, w.budget, w.open = 0, 0, int64(plan.Duration), -1, nil
	for _, c := range w.conns {
		c.begun, c.answered = 0, 0
	}
	if plan.Requests > 0 {
		perConn := ceilDiv(plan.Requests, w.config.Conns*w.config.Pipeline)
		w.budget = perConn * len(w.conns)
	}
	if plan.Rate > 0 {
		w.open = newSchedule(plan.Rate, w.config, w.thread)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (w *worker) nowNs() int64 { return int64(time.Since(w.begin)) }

func (w *worker) loop() error {
	if w.open == nil {
		for _, c := range w.conns {
			if err := w.start(c, w.nowNs()); err != nil {
				return err
			}
		}
	}
	for {
		nowNs, waitMs := w.nowNs(), wakeMs
		if w.open != nil {
			if err := w.sendDue(nowNs); err != nil {
				return err
			}
			if soon, err := w.awaitDue(); err != nil {
				return err
			} else if soon {
				waitMs = 0
			}
		}
		if w.active == 0 && !w.more(nowNs) {
			return nil
		}
		if w.stop.Load() {
			return errStopped
		}
		if err := w.impatient(nowNs); err != nil {
			return err
		}
		n, err := unix.EpollWait(w.epoll, w.events, waitMs)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		if err := w.serve(w.events[:max(n, 0)]); err != nil {
			return err
		}
	}
}

// impatient returns an error if replies are expected but none has arrived for too long.
func (w *worker) impatient(nowNs int64) error {
	if w.active == 0 {
		w.heardNs = nowNs
	}
	if silent := time.Duration(nowNs - w.heardNs); silent > w.config.Patience {
		return fmt.Errorf("no reply for %s while %d were expected", silent.Round(time.Second), w.active)
	}
	return nil
}

// more reports whether more batches will begin.
func (w *worker) more(nowNs int64) bool {
	if w.open != nil {
		return w.open.more(w)
	}
	return w.budget > 0 || w.budget < 0 && nowNs < w.endNs
}

func (w *worker) serve(events []unix.EpollEvent) error {
	for i := range events {
		if events[i].Fd < 0 {
			continue // the timer: the loop checks for due batches anyway
		}
		c := w.conns[events[i].Fd]
		if c.unsent > 0 || c.owed > 0 {
			if err := w.pump(c); err != nil {
				return err
			}
		}
		if events[i].Events&^unix.EPOLLOUT != 0 {
			if err := w.hear(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// hear receives replies, and in a closed loop begins the next batch after the last of them.
func (w *worker) hear(c *conn) error {
	n, err := c.receive(w.read)
	if err != nil {
		return err
	}
	if n.replies == 0 {
		return nil
	}
	if n.replies > c.awaited {
		return fmt.Errorf("%d replies arrived while %d were expected", n.replies, c.awaited)
	}
	nowNs := w.nowNs()
	w.heardNs = nowNs
	w.out.counted.replies += n.replies
	w.out.counted.limited += n.limited
	w.record(c, n.replies, nowNs)
	c.answered += n.replies
	c.awaited -= n.replies
	w.active -= n.replies
	if w.open == nil && c.awaited == 0 {
		return w.next(c, nowNs)
	}
	return nil
}

func (w *worker) record(c *conn, replies int, nowNs int64) {
	if w.open != nil {
		w.open.record(w, c, replies, nowNs)
		return
	}
	_ = w.out.latency.RecordValues(clampNs(nowNs-c.sentNs), int64(replies))
}

// clampNs limits a value to the range of the histograms.
func clampNs(ns int64) int64 { return min(max(ns, 1), int64(time.Minute)) }

// next begins the next batch of the closed loop, if there is one.
func (w *worker) next(c *conn, nowNs int64) error {
	if !w.more(nowNs) {
		return nil
	}
	return w.start(c, nowNs)
}

// start begins a batch of the closed loop. Each connection has one, however late this thread comes to run.
func (w *worker) start(c *conn, nowNs int64) error {
	if w.budget > 0 {
		w.budget--
	}
	c.owed, c.sentNs = 1, nowNs
	return w.pump(c)
}

// pump sends the due batches, as far as the system accepts them.
func (w *worker) pump(c *conn) error {
	for {
		if err := c.flush(); err != nil || c.unsent > 0 || c.owed == 0 {
			return err
		}
		c.batch = c.dialect.fill(w.config.Pipeline, w.sampler)
		if w.open != nil {
			w.open.recordLag(w, c)
		}
		c.owed--
		c.begun++
		c.unsent = len(c.batch)
		c.awaited += w.config.Pipeline
		w.active += w.config.Pipeline
	}
}

package load

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// schedule is when a thread's batches are due: one every stepNs, on its connections in turn. Because the
// times are fixed, the number of a reply on its connection determines when its request was due, and a late
// start counts as latency.
type schedule struct {
	stepNs float64 // of this thread
	shift  float64 // keeps the threads' batches apart
	next   int     // the batch that is due next
	conns  int

	timerNs int64 // when the timer fires
}

func newSchedule(rate float64, config *Config, thread int) *schedule {
	all := float64(config.Pipeline) / rate * float64(time.Second) // between two batches of any thread
	conns := (config.Conns - thread + config.Threads - 1) / config.Threads
	// A thread's share of the rate is its share of the connections.
	step := all * float64(config.Conns) / float64(conns)
	return &schedule{stepNs: step, shift: all * float64(thread), conns: conns}
}

func (s *schedule) dueNs(batch int) int64 { return int64(s.shift + float64(batch)*s.stepNs) }

// more reports whether more batches will become due or begin.
func (s *schedule) more(w *worker) bool {
	if w.budget >= 0 {
		return s.next < w.budget
	}
	return s.dueNs(s.next) < w.endNs
}

// sendDue begins the batches that are due.
func (w *worker) sendDue(nowNs int64) error {
	s := w.open
	for s.more(w) && s.dueNs(s.next) <= nowNs {
		c := w.conns[s.next%s.conns]
		s.next++
		c.owed++
		if err := w.pump(c); err != nil {
			return err
		}
	}
	return nil
}

// soonNs is a wait for which the thread does not sleep: in a virtual machine, a timer can cost tens of
// microseconds of CPU time, and as much delay.
const soonNs = 100_000

// awaitDue sets the timer for the next batch, or returns that it is due so soon that the thread should not
// sleep.
func (w *worker) awaitDue() (soon bool, err error) {
	s := w.open
	if !s.more(w) {
		return false, nil
	}
	dueNs, nowNs := s.dueNs(s.next), w.nowNs()
	if dueNs < nowNs+soonNs {
		return true, nil
	}
	if s.timerNs == dueNs {
		return false, nil
	}
	s.timerNs = dueNs
	wait := unix.NsecToTimespec(dueNs - nowNs - soonNs/2) // does not sleep for the rest, because waking takes time
	if err := unix.TimerfdSettime(w.timer, 0, &unix.ItimerSpec{Value: wait}, nil); err != nil {
		return false, fmt.Errorf("timer: %w", err)
	}
	return false, nil
}

// due returns when the connection's batch was due, the one that is index batches after its first.
func (s *schedule) due(index, connIndex int) int64 { return s.dueNs(index*s.conns + connIndex) }

// record counts the latency of a connection's next replies.
func (s *schedule) record(w *worker, c *conn, replies int, nowNs int64) {
	for at, end := c.answered, c.answered+replies; at < end; {
		batch, place := at/w.config.Pipeline, at%w.config.Pipeline
		n := min(end-at, w.config.Pipeline-place)
		_ = w.out.latency.RecordValues(clampNs(nowNs-s.due(batch, c.index)), int64(n))
		at += n
	}
}

// recordLag counts how late the connection's next batch begins.
func (s *schedule) recordLag(w *worker, c *conn) {
	_ = w.out.lag.RecordValue(clampNs(w.nowNs() - s.due(c.begun, c.index)))
}

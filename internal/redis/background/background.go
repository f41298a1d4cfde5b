// Package background runs what a session waits for: work on a goroutine, in its turn for a slot, or a delay.
// Tasks and Slots are safe for concurrent use.
package background

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Task is unfinished work. Its waiter is woken when it is done or cancelled.
type Task struct {
	ctx    context.Context // ends with the interest in the task
	cancel context.CancelFunc
	wake   func()
	timer  *time.Timer // nil without a delay

	mu      sync.Mutex  // rank 85: guards all below
	leave   func() bool // leaves the queue for a slot; may be nil
	stage   stage
	workNs  int64
	failure error // a recovered panic
}

type stage uint8

const (
	waits     stage = iota // for its delay or turn
	runs                   // on a goroutine
	cancelled              // before it ran
	done
)

// New returns a task that waits until Finish. ctx may end its work early.
func New(ctx context.Context, wake func()) *Task {
	ctx, cancel := context.WithCancel(ctx)
	return &Task{ctx: ctx, cancel: cancel, wake: wake}
}

// Run does work on a goroutine in its turn for a slot, at once if one is free. A waiting task has no
// goroutine, and a cancelled one keeps nothing alive.
func (t *Task) Run(slots *Slots, who Who, work func(context.Context)) {
	next := &turn{who: who}
	next.begin = func() bool {
		if !t.leaveWaiting(runs) {
			t.wake() // End wakes only for a turn that it takes back
			return false
		}
		go t.runIn(slots, who, work)
		return true
	}
	t.mu.Lock()
	t.leave = func() bool { return slots.leave(next) }
	t.mu.Unlock()
	slots.enter(next)
}

func (t *Task) runIn(slots *Slots, who Who, work func(context.Context)) {
	defer t.wake()
	defer slots.Give(who)
	t.work(slots.now, work)
}

func (t *Task) work(now func() int64, work func(context.Context)) {
	beganNs := now()
	defer func() {
		var failure error
		if value := recover(); value != nil {
			failure = fmt.Errorf("%v\n%s", value, debug.Stack())
		}
		ns := now() - beganNs
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stage, t.workNs, t.failure = done, ns, failure
	}()
	work(t.ctx)
}

// After finishes the task after a delay, which counts as its work.
func (t *Task) After(d time.Duration) {
	t.workNs = int64(d)
	t.timer = time.AfterFunc(d, t.Finish)
}

// Finish finishes a waiting task.
func (t *Task) Finish() {
	if t.leaveWaiting(done) {
		t.wake()
	}
}

func (t *Task) leaveWaiting(to stage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage != waits {
		return false
	}
	t.stage = to
	return true
}

// Cancel cancels a waiting task, and reports whether it was waiting.
func (t *Task) Cancel() bool {
	if !t.leaveWaiting(cancelled) {
		return false
	}
	t.End()
	t.wake()
	return true
}

// End ends the interest in the task: waiting work never runs, running work may end early, the delay stops.
func (t *Task) End() {
	t.leaveWaiting(cancelled)
	t.cancel()
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.leaveQueue() {
		t.wake()
	}
}

// leaveQueue drops the work, and reports whether it had still to wait.
func (t *Task) leaveQueue() bool {
	t.mu.Lock()
	leave := t.leave
	t.leave = nil
	t.mu.Unlock()
	return leave != nil && leave()
}

// Context ends with the interest in the task.
func (t *Task) Context() context.Context { return t.ctx }

func (t *Task) Running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == runs
}

// Outcome is a task's end.
type Outcome struct {
	Cancelled bool
	WorkNs    int64
	// Failure is a panic with its stack. It ends the waiting connection, not the process.
	Failure error
}

// Outcome returns the task's end, and false before it.
func (t *Task) Outcome() (o Outcome, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == cancelled {
		return Outcome{Cancelled: true}, true
	}
	return Outcome{WorkNs: t.workNs, Failure: t.failure}, t.stage == done
}

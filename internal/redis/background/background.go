// Package background is what a session waits for: work on a goroutine of its own, in its turn for one of a few slots, or
// a time. A Task is safe for concurrent use, and so are Slots.
package background

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Task is something that is not done. Whoever waits for it is woken when it is done or cancelled.
type Task struct {
	ctx    context.Context // ends with the interest in the task
	cancel context.CancelFunc
	wake   func()
	timer  *time.Timer // of its time; nil without one

	mu      sync.Mutex  // guards all below
	leave   func() bool // the queue for a slot; nil where it stands in none
	stage   stage
	workNs  int64
	failure error // a panic
}

// stage is how far a task has come.
type stage uint8

const (
	waits     stage = iota // for its time or its turn
	runs                   // on a goroutine
	cancelled              // before it ran
	done
)

// New returns a task that waits until Finish. Work that it runs may end early when ctx does.
func New(ctx context.Context, wake func()) *Task {
	ctx, cancel := context.WithCancel(ctx)
	return &Task{ctx: ctx, cancel: cancel, wake: wake}
}

// Run does work on a goroutine of its own, in its turn for a slot. If one is free, its turn has come before Run returns.
// While the task waits it has no goroutine, and once it is cancelled it keeps nothing of the work.
func (t *Task) Run(slots *Slots, who Who, work func(context.Context)) {
	next := &turn{who: who}
	next.begin = func() bool {
		if !t.leaveWaiting(runs) {
			t.wake() // End does so only for a turn that it takes back
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

// After lets the task be done when a time has passed, which counts as its work.
func (t *Task) After(d time.Duration) {
	t.workNs = int64(d)
	t.timer = time.AfterFunc(d, t.Finish)
}

// Finish lets a task be done that waits.
func (t *Task) Finish() {
	if t.leaveWaiting(done) {
		t.wake()
	}
}

// leaveWaiting changes the stage of a task that waits.
func (t *Task) leaveWaiting(to stage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage != waits {
		return false
	}
	t.stage = to
	return true
}

// Cancel cancels a task that only waits, and reports whether it did.
func (t *Task) Cancel() bool {
	if !t.leaveWaiting(cancelled) {
		return false
	}
	t.End()
	t.wake()
	return true
}

// End ends the interest in the task: one that waits never runs, one that runs may end early, and its time is stopped.
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

// leaveQueue lets go of the work, and reports whether its turn had not come.
func (t *Task) leaveQueue() bool {
	t.mu.Lock()
	leave := t.leave
	t.leave = nil
	t.mu.Unlock()
	return leave != nil && leave()
}

// Context ends with the interest in the task.
func (t *Task) Context() context.Context { return t.ctx }

// Running reports whether the task runs.
func (t *Task) Running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == runs
}

// Outcome is how a task ended.
type Outcome struct {
	Cancelled bool
	WorkNs    int64
	// Failure is a panic with its stack, which must end the connection that waited and not the process.
	Failure error
}

// Outcome returns how the task ended, and false while it has not.
func (t *Task) Outcome() (o Outcome, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == cancelled {
		return Outcome{Cancelled: true}, true
	}
	return Outcome{WorkNs: t.workNs, Failure: t.failure}, t.stage == done
}

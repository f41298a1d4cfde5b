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

// Slots bound how much is done at once.
type Slots chan struct{}

// NewSlots returns n slots, at least one.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Take waits for a slot, and is false if nobody is interested any more.
func (s Slots) Take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Give returns a slot.
func (s Slots) Give() { <-s }

// Task is something that is not done. Whoever waits for it is woken when it is done or cancelled.
type Task struct {
	ctx    context.Context // ends with the interest in the task
	cancel context.CancelFunc
	wake   func()
	timer  *time.Timer // of its time; nil without one

	mu      sync.Mutex // guards all below
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

// New returns a task that waits until Finish.
func New(wake func()) *Task {
	ctx, cancel := context.WithCancel(context.Background())
	return &Task{ctx: ctx, cancel: cancel, wake: wake}
}

// Run does work on a goroutine of its own, in its turn for a slot. If one is free, its turn has come before Run returns.
func (t *Task) Run(slots Slots, now func() int64, work func(context.Context)) {
	select {
	case slots <- struct{}{}:
		t.leaveWaiting(runs)
		go t.runIn(slots, now, work)
	default:
		go t.runInTurn(slots, now, work)
	}
}

func (t *Task) runInTurn(slots Slots, now func() int64, work func(context.Context)) {
	switch {
	case !slots.Take(t.ctx):
		t.wake()
	case !t.leaveWaiting(runs):
		slots.Give()
		t.wake()
	default:
		t.runIn(slots, now, work)
	}
}

func (t *Task) runIn(slots Slots, now func() int64, work func(context.Context)) {
	defer t.wake()
	defer slots.Give()
	t.work(now, work)
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
}

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

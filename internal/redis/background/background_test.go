package background

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTask: how each way to begin a task meets each way to end it.
func TestTask(t *testing.T) {
	begin := map[string]func(task *Task, slots *Slots){
		"a time": func(task *Task, _ *Slots) { task.After(time.Minute) },
		"a turn": func(task *Task, slots *Slots) {
			slots.Take(context.Background(), Who{}) // for good
			task.Run(slots, Who{}, func(context.Context) { panic("it ran") })
		},
		"work":    func(task *Task, slots *Slots) { task.Run(slots, Who{}, func(ctx context.Context) { <-ctx.Done() }) },
		"nothing": func(*Task, *Slots) {},
	}
	for _, tt := range []struct {
		begin     string
		end       func(task *Task) (did bool)
		did       bool
		woken     int64
		ended     bool
		cancelled bool
	}{
		{begin: "a time", end: passMinute, did: true, woken: 1, ended: true},
		{begin: "a time", end: (*Task).Cancel, did: true, woken: 1, ended: true, cancelled: true},
		{begin: "a time", end: finish, did: true, woken: 1, ended: true},
		{begin: "a time", end: end, did: true, ended: true, cancelled: true},
		{begin: "a turn", end: (*Task).Cancel, did: true, woken: 2, ended: true, cancelled: true},
		{begin: "a turn", end: end, did: true, woken: 1, ended: true, cancelled: true},
		{begin: "work", end: (*Task).Cancel},
		{begin: "work", end: finish, did: true},
		{begin: "work", end: end, did: true, woken: 1, ended: true},
		{begin: "nothing", end: finish, did: true, woken: 1, ended: true},
		{begin: "nothing", end: (*Task).Cancel, did: true, woken: 1, ended: true, cancelled: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var wakes atomic.Int64
			task, slots := New(t.Context(), func() { wakes.Add(1) }), NewSlots(0, now)
			begin[tt.begin](task, slots)
			synctest.Wait()
			if _, ended := task.Outcome(); ended || wakes.Load() != 0 || task.Running() != (tt.begin == "work") {
				t.Errorf("%s: ended is %t, woken %d times, running is %t before it is", tt.begin, ended, wakes.Load(), task.Running())
			}
			did := tt.end(task)
			synctest.Wait()
			o, ended := task.Outcome()
			woken := wakes.Load()
			if did != tt.did || woken != tt.woken || ended != tt.ended || o.Cancelled != tt.cancelled || o.Failure != nil {
				t.Errorf("%s: did is %t, woken %d times, %+v, ended is %t; want %+v", tt.begin, did, woken, o, ended, tt)
			}
			task.End()
			synctest.Wait()
			before := wakes.Load()
			time.Sleep(time.Hour)
			if synctest.Wait(); wakes.Load() != before {
				t.Errorf("%s: woken after its end", tt.begin)
			}
		})
	}
}

func now() int64 { return time.Now().UnixNano() }

func passMinute(*Task) bool {
	time.Sleep(time.Minute)
	return true
}

func finish(t *Task) bool {
	t.Finish()
	return true
}

func end(t *Task) bool {
	t.End()
	return true
}

// TestTurnOfATaskThatEnds: a turn that comes between the two steps of End is handed on, and its waiter is
// woken.
func TestTurnOfATaskThatEnds(t *testing.T) {
	woken, next := 0, make(chan struct{})
	task, slots := New(t.Context(), func() { woken++ }), NewSlots(0, now)
	slots.Take(t.Context(), Who{})
	task.Run(slots, Who{}, func(context.Context) { panic("it ran") })
	New(t.Context(), func() { close(next) }).Run(slots, Who{}, func(context.Context) {})
	task.leaveWaiting(cancelled)
	slots.Give(Who{})
	task.End()
	if <-next; woken != 1 {
		t.Errorf("woken %d times, want once", woken)
	}
}

// TestWork: it is timed, and a panic in it is told with its stack; slots are given back in every case.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(1, now)
		for _, breaks := range []bool{false, true, false} {
			woken := make(chan struct{}, 1)
			task := New(t.Context(), func() { woken <- struct{}{} })
			task.Run(slots, Who{}, func(context.Context) {
				time.Sleep(time.Second)
				if breaks {
					panic("it broke")
				}
			})
			<-woken
			o, ended := task.Outcome()
			if !ended || o.Cancelled || o.WorkNs != int64(time.Second) || (o.Failure != nil) != breaks {
				t.Errorf("%+v, ended is %t", o, ended)
			}
			if breaks && (!strings.Contains(o.Failure.Error(), "it broke") || !strings.Contains(o.Failure.Error(), "background_test.go")) {
				t.Errorf("failed with %q", o.Failure)
			}
			if task.Cancel() {
				t.Error("what was done could be cancelled")
			}
		}
		task := New(t.Context(), func() {})
		task.After(time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		if o, _ := task.Outcome(); o.WorkNs != int64(time.Minute) {
			t.Errorf("a time of %d ns", o.WorkNs)
		}
		task = New(t.Context(), func() {})
		task.After(time.Minute)
		task.Cancel()
		if o, _ := task.Outcome(); o.WorkNs != 0 {
			t.Errorf("a time of %d ns, though it was cancelled", o.WorkNs)
		}
	})
}

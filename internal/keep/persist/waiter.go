package persist

import (
	"fmt"
	"slices"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/store/gate"
)

// waiter waits until its changes are on disk.
type waiter struct {
	done   func(kept bool)
	lateNs int64 // when it learns of a failure; 0 for never
}

// Sync calls done once, from any goroutine, when all earlier changes are on disk, and never if that fails
// before the server ends.
func (k *Keeper) Sync(done func()) { k.await(waiter{done: func(bool) { done() }}) }

// Confirm is Sync that calls done with false, finally, after Config.Timeout or a fiftieth more. There is a
// fault then until the disk catches up.
func (k *Keeper) Confirm(done func(kept bool)) {
	w := waiter{done: done}
	if k.config.Timeout > 0 {
		w.lateNs = k.config.Now() + int64(k.config.Timeout)
	}
	k.await(w)
}

func (k *Keeper) await(w waiter) {
	k.mu.Lock()
	k.waiting = append(k.waiting, w)
	n := len(k.waiting)
	wake := n == 1 || n == k.company
	if w.lateNs > 0 && !k.timed { // one timer for all
		k.timed = true
		time.AfterFunc(k.config.Timeout, k.answerLate)
	}
	k.mu.Unlock()
	if wake {
		k.wake()
	}
}

// takeWaiting moves the waiters to the beginning sync.
func (k *Keeper) takeWaiting() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.syncing, k.waiting = k.waiting, nil
	return len(k.syncing)
}

func (k *Keeper) answerSynced() {
	var synced []waiter
	k.locked(func() { synced, k.syncing = k.syncing, nil })
	for _, w := range synced {
		w.done(true)
	}
}

// answerLate answers those whose time is over. A timer calls it, as the disk may hang.
func (k *Keeper) answerLate() {
	nowNs := k.config.Now()
	k.mu.Lock()
	late, nextNs := k.takeLateLocked(nowNs)
	if k.timed = nextNs > 0; k.timed { // many become late together
		time.AfterFunc(max(time.Duration(nextNs-nowNs), k.config.Timeout/50), k.answerLate)
	}
	hangs := len(late) > 0 && k.status.Fault == nil
	if hangs {
		err := fmt.Errorf("persist: the disk has not taken a change within %v", k.config.Timeout)
		k.faultyLocked(nowNs, err)
	}
	k.mu.Unlock()
	if hangs {
		k.freeze()
		k.announce()
		k.config.Log.Error("what changes is not kept: the disk does not answer in time",
			"timeout", k.config.Timeout.String(), "hint",
			"changes are refused until it does; see what else uses that disk, and whether it fails")
	}
	for _, w := range late {
		w.done(false)
	}
}

// takeLateLocked removes the late waiters, and returns when the next one is late; 0 for none.
func (k *Keeper) takeLateLocked(nowNs int64) (late []waiter, nextNs int64) {
	takes := func(w waiter) bool {
		switch {
		case w.lateNs == 0:
			return false
		case w.lateNs <= nowNs:
			late = append(late, w)
			return true
		case nextNs == 0 || w.lateNs < nextNs:
			nextNs = w.lateNs
		}
		return false
	}
	k.syncing, k.waiting = slices.DeleteFunc(k.syncing, takes), slices.DeleteFunc(k.waiting, takes)
	return late, nextNs
}

func (k *Keeper) faultyLocked(nowNs int64, err error) (first bool) {
	st := &k.status
	if first = st.Fault == nil; first {
		st.FaultSinceNs, st.Faults = nowNs, st.Faults+1
	}
	st.Fault = err
	return first
}

// freeze makes the store refuse changes during a fault if replies wait for the disk. It is called after each
// change of that condition, so the last call is right.
func (k *Keeper) freeze() {
	k.freezing.Lock()
	defer k.freezing.Unlock()
	if k.Confirms() && k.Status().Fault != nil {
		k.config.Gate.Close(gate.Disk, 0, store.ErrFrozen)
	} else {
		k.config.Gate.Open(gate.Disk)
	}
}

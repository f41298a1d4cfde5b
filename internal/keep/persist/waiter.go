package persist

import (
	"fmt"
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

// putBack returns them after a failed sync.
func (k *Keeper) putBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting, k.syncing = append(k.syncing, k.waiting...), nil
}

// answerSynced answers the sync's waiters.
func (k *Keeper) answerSynced() {
	k.mu.Lock()
	synced := k.syncing
	k.syncing = nil
	k.mu.Unlock()
	for _, w := range synced {
		w.done(true)
	}
}

// answerLate answers those whose time is over. A timer calls it, as the disk may hang.
func (k *Keeper) answerLate() {
	nowNs := k.config.Now()
	l := lateness{nowNs: nowNs}
	k.mu.Lock()
	k.syncing, k.waiting = l.takeFrom(k.syncing), l.takeFrom(k.waiting)
	if k.timed = l.nextNs > 0; k.timed { // many become late together
		time.AfterFunc(max(time.Duration(l.nextNs-nowNs), k.config.Timeout/50), k.answerLate)
	}
	hangs := len(l.late) > 0 && k.status.Fault == nil
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
	for _, w := range l.late {
		w.done(false)
	}
}

// lateness separates late waiters.
type lateness struct {
	nowNs  int64
	late   []waiter
	nextNs int64 // of the next one; 0 for none
}

// takeFrom removes the late ones.
func (l *lateness) takeFrom(waiting []waiter) (others []waiter) {
	for _, w := range waiting {
		switch {
		case w.lateNs == 0:
		case w.lateNs <= l.nowNs:
			l.late = append(l.late, w)
			continue
		case l.nextNs == 0 || w.lateNs < l.nextNs:
			l.nextNs = w.lateNs
		}
		others = append(others, w)
	}
	return others
}

// faultyLocked records a fault and reports whether it is new.
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

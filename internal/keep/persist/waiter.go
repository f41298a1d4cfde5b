package persist

import (
	"fmt"
	"time"
)

// waiter waits until what has changed is on the disk.
type waiter struct {
	done   func(kept bool)
	lateNs int64 // when it is told that this has not happened; 0 for never
}

// Sync calls done once, from any goroutine, when all that had changed before the call is on the disk. It is
// never called if that comes to no disk before the server ends.
func (k *Keeper) Sync(done func()) { k.await(waiter{done: func(bool) { done() }}) }

// Confirm is Sync that calls done with false, and never again, if that has not happened within
// Config.Timeout, or a fiftieth more. Until the disk has taken what changed, there is a fault then.
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
	if w.lateNs > 0 && !k.timed { // one timer for all: it is not set for each reply
		k.timed = true
		time.AfterFunc(k.config.Timeout, k.answerLate)
	}
	k.mu.Unlock()
	if wake {
		k.wake()
	}
}

// takeWaiting takes those for whom the next sync is.
func (k *Keeper) takeWaiting() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.syncing, k.waiting = k.waiting, nil
	return len(k.syncing)
}

// putBack has those wait on for whom the sync was.
func (k *Keeper) putBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting, k.syncing = append(k.syncing, k.waiting...), nil
}

// answerSynced answers those for whom the sync was.
func (k *Keeper) answerSynced() {
	k.mu.Lock()
	synced := k.syncing
	k.syncing = nil
	k.mu.Unlock()
	for _, w := range synced {
		w.done(true)
	}
}

// answerLate answers those who have waited for as long as they may. It is a timer's, as what they wait for
// may hang.
func (k *Keeper) answerLate() {
	nowNs := k.config.Now()
	l := lateness{nowNs: nowNs}
	k.mu.Lock()
	k.syncing, k.waiting = l.takeFrom(k.syncing), l.takeFrom(k.waiting)
	if k.timed = l.nextNs > 0; k.timed { // many are late at almost the same time
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
		k.config.Log.Error("what changes is not kept: the disk does not answer in time",
			"timeout", k.config.Timeout.String(), "hint",
			"changes are refused until it does; see what else uses that disk, and whether it fails")
	}
	for _, w := range l.late {
		w.done(false)
	}
}

// lateness tells who is late from who is not.
type lateness struct {
	nowNs  int64
	late   []waiter
	nextNs int64 // when the first of the others is; 0 if none will be
}

// takeFrom returns those who are not late.
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

// faultyLocked notes why the disk does not have what it should, and reports whether that is new.
func (k *Keeper) faultyLocked(nowNs int64, err error) (first bool) {
	st := &k.status
	if first = st.Fault == nil; first {
		st.FaultSinceNs, st.Faults = nowNs, st.Faults+1
	}
	st.Fault = err
	return first
}

// freeze has the store refuse changes, if replies wait for the disk and there is a fault, or no longer. Who
// has changed whether there is one calls it behind that, so the last call is right, whichever it is.
func (k *Keeper) freeze() {
	k.freezing.Lock()
	defer k.freezing.Unlock()
	if frozen := k.Confirms() && k.Status().Fault != nil; frozen != k.frozen.Load() {
		k.frozen.Store(frozen)
		k.config.Store.Freeze(frozen)
	}
}

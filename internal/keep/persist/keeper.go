// Package persist keeps a store on disk: a log of changes, renewed by snapshots. Memory is the truth and the
// disk its copy, so every failure has one remedy: abandon the current generation of files, and write a new
// one from memory. A Keeper is safe for concurrent use.
package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
)

// ErrEnded ends a snapshot abandoned for the server's end or for another snapshot.
var ErrEnded = errors.New("persist: the snapshot was given up")

type Store interface {
	store.Store
	store.Tracker
}

type Config struct {
	Dir      disk.Dir
	Store    Store
	Changes  *changes.Gatherer // of the store; nil for one of its own
	Gate     *gate.Gate        // of the store; nil for one of its own
	Now      func() int64      // monotonic Unix nanoseconds
	Interval time.Duration
	Timeout  time.Duration // of Confirm; 0 for none
	Repair   bool          // reads the readable parts of damaged files and sets the files aside
	// Loaded is called before clients are served, with the last server's latest time or 0, and returns the
	// clock's lead over the system's.
	Loaded func(clockNs int64) (offsetNs int64)
	// Yield yields the processor, like background.Yield; may be nil.
	Yield func()
	// Beside names other files in the directory, which Rewrite writes again after a loss of the directory;
	// may be nil.
	Beside  []string
	Rewrite func() error
	// Named are those of Beside that the server never removes, so that the manifest may require them.
	Named []string
	// Stands is called, without locks, after what a start would find has changed; may be nil.
	Stands func()
	// LeastLogBytes is the least size of logs to be replaced by a snapshot; 0 for the default.
	LeastLogBytes int64
	Log           *slog.Logger
}

// leastLogBytes is Redis's default.
const leastLogBytes = 64 << 20

type Keeper struct {
	config  Config
	loading atomic.Bool
	loaded  atomic.Int64  // bytes so far
	kick    chan struct{} // a sync or a snapshot is awaited

	freezing sync.Mutex // rank 35: held while telling the gate about a fault

	mu      sync.Mutex // rank 85: guards all below
	status  store.Durability
	waiting []waiter // for the next sync
	syncing []waiter // for the current sync
	timed   bool     // a timer runs for bounded waits
	company int      // expected number of joint waiters
	saves   []func(error)
	naming  []chan struct{} // calls of NameBeside
	ended   bool
	// Times that the states were replaced, and how many of these a manifest's snapshot has.
	renewals, renewed uint64
	found             Found
}

func New(c Config) *Keeper {
	if c.LeastLogBytes == 0 {
		c.LeastLogBytes = leastLogBytes
	}
	if c.Yield == nil {
		c.Yield = func() {}
	}
	if c.Changes == nil {
		c.Changes = changes.New(c.Store, c.Now)
	}
	if c.Gate == nil {
		c.Gate = gate.New(c.Store, c.Now)
	}
	k := &Keeper{config: c, kick: make(chan struct{}, 1)}
	k.loading.Store(true)
	c.Gate.BeginLoading()
	k.status = store.Durability{Interval: c.Interval, Loading: true, LoadBeganNs: c.Now(), LastSaveTookNs: -1}
	return k
}

// Loading reports whether the store is being loaded and must not be used.
func (k *Keeper) Loading() bool { return k.loading.Load() }

// Confirms reports whether replies to changes must wait for a sync.
func (k *Keeper) Confirms() bool { return k.config.Interval == 0 }

// Gate returns the store's gate, closed while changes could not be persisted and replies wait for that.
func (k *Keeper) Gate() *gate.Gate { return k.config.Gate }

// Status returns the current state without waiting for the disk.
func (k *Keeper) Status() store.Durability {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.status
	st.LoadedBytes = k.loaded.Load()
	if len(k.saves) > 0 && !st.Saving { // it begins soon
		st.Saving, st.SaveBeganNs = true, k.config.Now()
	}
	st.WaitingReplies, st.Renewing = int64(len(k.waiting)+len(k.syncing)), k.renewals != k.renewed
	return st
}

func (k *Keeper) locked(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}

func (k *Keeper) update(change func(st *store.Durability)) { k.locked(func() { change(&k.status) }) }

// Save requests a snapshot and calls done once, from any goroutine, at its completion or failure. While
// another is under way it returns store.ErrSaving.
func (k *Keeper) Save(done func(error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ended:
		return ErrEnded
	case k.status.Saving || len(k.saves) > 0:
		return store.ErrSaving
	}
	k.saves = append(k.saves, done)
	k.wake()
	return nil
}

func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default: // it is awake
	}
}

// Run loads the directory, calls ready, and persists changes until ctx ends and all are on disk.
func (k *Keeper) Run(ctx context.Context, ready func()) error {
	defer k.end()
	l, err := k.restore(ctx)
	switch {
	case ctx.Err() != nil:
		return nil // nothing has changed
	case err != nil:
		return err
	}
	return k.keep(ctx, l, ready)
}

// end answers those who wait for a snapshot, but not for a sync: an unfinished one confirms nothing.
func (k *Keeper) end() {
	k.locked(func() { k.ended = true })
	k.answerSaves(ErrEnded)
}

func (k *Keeper) answerSaves(err error) {
	var saves []func(error)
	k.locked(func() { saves, k.saves = k.saves, nil })
	for _, done := range saves {
		done(err)
	}
}

// Found is what a start has found in the directory; the zero value for nothing, or for damage.
type Found struct {
	Generation uint64 // number of the newest log
	Sequence   uint64 // of its next frame
}

func (k *Keeper) Found() (f Found) {
	k.locked(func() { f = k.found })
	return f
}

// Renew begins a new generation at once, as the states were replaced: the files have others. Status says when
// a manifest names it.
func (k *Keeper) Renew() {
	k.locked(func() { k.renewals++ })
	k.wake()
}

// renew abandons files without the latest replacement of states.
func (r *keeping) renew() {
	before := r.renewal
	if r.locked(func() { r.renewal = r.renewals }); r.renewal != before {
		r.leave()
	}
}

// announce reports that a start would find something else.
func (k *Keeper) announce() {
	if k.config.Stands != nil {
		k.config.Stands()
	}
}

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

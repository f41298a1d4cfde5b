// Package persist keeps what a store has on a disk: a log of what changed, which is begun anew with a snapshot now and then.
// In this server memory is the truth and the disk its shadow: whatever goes wrong there has one cure, to leave the generation
// of files that is being written, and to write a new one of what memory has. A Keeper is safe for concurrent use.
package persist

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// ErrEnded is what a snapshot ends with that was given up, as the server ends or another one is begun instead.
var ErrEnded = errors.New("persist: the snapshot was given up")

// Store is a store whose changes can be kept.
type Store interface {
	store.Store
	store.Tracker
}

// Config is what a Keeper needs.
type Config struct {
	Dir      disk.Dir
	Store    Store
	Now      func() int64 // Unix nanoseconds, never going back
	Interval time.Duration
	Timeout  time.Duration // for which Confirm waits at most; 0 for ever
	Repair   bool          // read of damaged files what can be read, and keep them aside
	// Loaded is called before clients are served, with the latest time that the server had seen when it ended, 0 for none. It
	// returns by how much its clock is ahead of the system's for that.
	Loaded func(clockNs int64) (offsetNs int64)
	// Yield lets others have the processor, as background.Yield does; nil for nothing.
	Yield func()
	// Beside are the names of files that others keep in the directory. Rewrite writes them again, if any has
	// been there, where the directory has been gone; nil for nothing.
	Beside  []string
	Rewrite func() error
	// LeastLogBytes is how long logs become, at the least, before a snapshot replaces them; 0 for the default.
	LeastLogBytes int64
	Log           *slog.Logger
}

// leastLogBytes is Config.LeastLogBytes by default, as in Redis.
const leastLogBytes = 64 << 20

// Keeper keeps what a store has on a disk.
type Keeper struct {
	config  Config
	loading atomic.Bool
	frozen  atomic.Bool
	loaded  atomic.Int64  // bytes
	kick    chan struct{} // somebody waits for a sync, or for a snapshot

	freezing sync.Mutex // held while the store is told whether there is a fault

	mu      sync.Mutex // guards all below
	status  store.Durability
	waiting []waiter // for a sync that begins from now on
	syncing []waiter // for the one that is under way
	timed   bool     // a timer runs for those of them whose time is bounded
	company int      // how many are expected to wait together
	saves   []func(error)
	ended   bool
}

// New returns a Keeper whose store is about to be loaded.
func New(c Config) *Keeper {
	if c.LeastLogBytes == 0 {
		c.LeastLogBytes = leastLogBytes
	}
	if c.Yield == nil {
		c.Yield = func() {}
	}
	k := &Keeper{config: c, kick: make(chan struct{}, 1)}
	k.loading.Store(true)
	k.status = store.Durability{Interval: c.Interval, Loading: true, LoadBeganNs: c.Now(), LastSaveTookNs: -1}
	return k
}

// Loading reports whether what was kept is still being read, so that nothing may be asked of the store.
func (k *Keeper) Loading() bool { return k.loading.Load() }

// Confirms reports whether a reply that tells of a change must wait for Sync.
func (k *Keeper) Confirms() bool { return k.config.Interval == 0 }

// Frozen reports whether nothing may be changed, for it could not be kept.
func (k *Keeper) Frozen() bool { return k.frozen.Load() }

// Status returns what the Keeper is at. It never waits for the disk.
func (k *Keeper) Status() store.Durability {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.status
	st.LoadedBytes = k.loaded.Load()
	if len(k.saves) > 0 && !st.Saving { // it is about to be begun
		st.Saving, st.SaveBeganNs = true, k.config.Now()
	}
	st.WaitingReplies = int64(len(k.waiting) + len(k.syncing))
	return st
}

func (k *Keeper) update(change func(st *store.Durability)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.status)
}

// Save has a snapshot written, and calls done once, from any goroutine, when it stands or has failed. While another one is
// being written it returns store.ErrSaving and does nothing.
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

// Run loads what was kept, calls ready, and keeps what changes until ctx ends and all of it is on the disk.
func (k *Keeper) Run(ctx context.Context, ready func()) error {
	defer k.end()
	l, err := k.restore(ctx)
	switch {
	case ctx.Err() != nil:
		return nil // nothing has been changed there
	case err != nil:
		return err
	}
	return k.keep(ctx, l, ready)
}

// end answers those who wait for a snapshot. Those who wait for a sync are not: nobody may be told that something is on a
// disk which is not.
func (k *Keeper) end() {
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
	k.answerSaves(ErrEnded)
}

func (k *Keeper) answerSaves(err error) {
	k.mu.Lock()
	saves := k.saves
	k.saves = nil
	k.mu.Unlock()
	for _, done := range saves {
		done(err)
	}
}

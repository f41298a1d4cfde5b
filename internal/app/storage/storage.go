package main

import (
	"context"
	"log/slog"
	"time"

	"cellserver/internal/base/clock"
	"cellserver/internal/decide/limits"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/remote"
	"cellserver/internal/keep/remote/watch"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// storage keeps the states and the named limits, where the settings say. It is safe for concurrent use.
type storage struct {
	options  *options
	log      *slog.Logger
	clock    *clock.Clock
	store    store.Store
	tables   *shard.Store // the store, or what stands in for it; nil for neither
	remote   *remoteStore // the store on other machines; nil for none
	memory   *memory.Bound
	shortage memory.Shortage // of the memory for keys
	dir      *disk.OS        // nil without --data-dir
	keeper   *persist.Keeper // of the directory
	limits   *limits.Registry
}

// openStorage opens the store, the data directory and the named limits. It loads no states.
func openStorage(ctx context.Context, o *options, clk *clock.Clock, log *slog.Logger) (_ *storage, err error) {
	s := &storage{options: o, log: log, clock: clk}
	if err := s.openStore(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.openDataDir(ctx); err != nil {
		return nil, err
	}
	if err := s.openLimits(); err != nil {
		return nil, err
	}
	return s, nil
}

// close closes the store on other machines. What keep has opened it closes itself.
func (s *storage) close() { s.remote.close() }

// openStore makes what keeps the states: tables in memory, a store on other machines, or that and tables which stand in for it.
func (s *storage) openStore() (err error) {
	if s.options.hasTables() {
		s.tables = shard.New()
		s.memory = boundMemory(s.options, s.tables, s.log)
	} else {
		s.memory = boundMemory(s.options, noTables{}, s.log)
	}
	if !s.options.isRemote() {
		s.store = s.tables
		return nil
	}
	if s.remote, err = s.openRemote(); err != nil {
		return err
	}
	s.store = s.remote.Store
	if s.tables != nil {
		s.store = withTables{s.remote.Store, s.tables}
	}
	return nil
}

// keys counts the keys. It takes every shard's lock once.
func (s *storage) keys() int {
	var st store.Stats
	s.store.UpdateStats(&st)
	return st.Keys
}

// noTables is the memory of a server whose keys are all elsewhere.
type noTables struct{}

// SetMaxBytes implements store.Bounded.
func (noTables) SetMaxBytes(int64, store.Policy) {}

// withTables is a remote store whose figures include the tables that stand in for it.
type withTables struct {
	*remote.Store
	tables *shard.Store
}

// UpdateStats implements store.Store. What the tables have decided is counted by the policy.
func (s withTables) UpdateStats(st *store.Stats) {
	s.Store.UpdateStats(st)
	var t store.Stats
	s.tables.UpdateStats(&t)
	st.Keys += t.Keys
	st.Slots += t.Slots
	st.Bytes += t.Bytes
	st.NameBytes += t.NameBytes
	st.Expired += t.Expired
	st.Swept += t.Swept
	st.MaxBytes += t.MaxBytes
	st.Evicted += t.Evicted
	st.Refused += t.Refused
}

// ready returns an error while clients should go elsewhere, because changes are not kept or not decided.
func (s *storage) ready() error {
	if err := diskReady(s.options, s.persistence()); err != nil {
		return err
	}
	return s.remote.ready()
}

// degraded says in what ways a server that is ready does not do all that it should, each in one line; none
// while all is well. It is the one answer for /readyz and cellserver health. A degraded server stays ready:
// all of a fleet are degraded at once, by a flood of keys or a store that is gone, and what is left of the
// limits is worth more than none.
func (s *storage) degraded() (ways []string) {
	disk, keys := diskDegraded(s.persistence()), memoryDegraded(&s.shortage, s.clock.Now())
	for _, way := range []string{disk, keys, s.remote.degraded()} {
		if way != "" {
			ways = append(ways, way)
		}
	}
	return ways
}

// tend starts what the store needs in the background, each part by run; swept is told how long a sweep took.
func (s *storage) tend(background context.Context, run func(name string, part func()), swept func(ns int64)) {
	catchUp := func() { noteSuspension(s.log, s.clock.CatchUp()) }
	if s.tables != nil {
		sweeper := shard.NewSweeper(s.tables)
		sweeper.Before = catchUp
		sweeper.Took = swept
		run("the sweeper", func() { sweeper.Run(background, s.clock.Now) })
	} else {
		run("the clock", func() { every(background, clockInterval, catchUp) })
	}
	if s.remote != nil {
		run("the watch of the store", func() { s.remote.watch.Run(background) })
	}
}

// clockInterval is how often the clock is compared with the system's where no sweeper does it.
const clockInterval = 50 * time.Millisecond

// every calls f once an interval until ctx is done.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

// remoteStatus returns what tells how the store on other machines is; nil where there is none.
func (s *storage) remoteStatus() func() watch.Status {
	if s.remote == nil {
		return nil
	}
	return s.remote.watch.Status
}

func noteSuspension(log *slog.Logger, slept time.Duration) {
	if slept > 0 {
		log.Warn("the machine was suspended; the clock was set forward by that time", "for", slept.Round(time.Millisecond))
	}
}

func noteClockOffset(log *slog.Logger, offsetNs int64) {
	if offsetNs > 0 {
		log.Warn("the system's clock is before the time at which the server ended; its own clock goes on from there, so that nobody is let through or kept out by that",
			"ahead", time.Duration(offsetNs).Round(time.Millisecond))
	}
}

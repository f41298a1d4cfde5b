// Package storage opens what keeps the states, as the settings say: tables in memory, a store on other
// machines, a data directory, the named limits and the bound of the memory.
package storage

import (
	"context"
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/clock"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/remote"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// Storage keeps the states and the named limits, where the settings say. It is safe for concurrent use.
type Storage struct {
	options  *settings.Options
	log      *slog.Logger
	clock    *clock.Clock
	Store    store.Store
	Tables   *shard.Store // the store, or what stands in for it; nil for neither
	Remote   *Remote      // the store on other machines; nil for none
	Memory   *memory.Bound
	shortage memory.Shortage // of the memory for keys
	dir      *disk.OS        // nil without --data-dir
	Keeper   *persist.Keeper // of the directory
	Limits   *namedlimit.Registry
}

// Open opens the store, the data directory and the named limits. It loads no states.
func Open(ctx context.Context, o *settings.Options, clk *clock.Clock, log *slog.Logger) (_ *Storage, err error) {
	s := &Storage{options: o, log: log, clock: clk}
	if err := s.openStore(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
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

// Close closes the store on other machines. What keep has opened it closes itself.
func (s *Storage) Close() { s.Remote.close() }

// openStore makes what keeps the states: tables in memory, a store on other machines, or that and tables which stand in for it.
func (s *Storage) openStore() (err error) {
	if s.options.HasTables() {
		s.Tables = shard.New()
		s.Memory = boundMemory(s.options, s.Tables, s.log)
	} else {
		s.Memory = boundMemory(s.options, noTables{}, s.log)
	}
	if !s.options.IsRemote() {
		s.Store = s.Tables
		return nil
	}
	if s.Remote, err = s.openRemote(); err != nil {
		return err
	}
	s.Store = s.Remote.Store
	if s.Tables != nil {
		s.Store = withTables{s.Remote.Store, s.Tables}
	}
	return nil
}

// Keys counts the keys. It takes every shard's lock once.
func (s *Storage) Keys() int {
	var st store.Stats
	s.Store.UpdateStats(&st)
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

// Ready returns an error while clients should go elsewhere, because changes are not kept or not decided.
func (s *Storage) Ready() error {
	if err := diskReady(s.options, s.Persistence()); err != nil {
		return err
	}
	return s.Remote.ready()
}

// Degraded says in what ways a server that is ready does not do all that it should, each in one line; none
// while all is well. It is the one answer for /readyz and cellserver health. A degraded server stays ready:
// all of a fleet are degraded at once, by a flood of keys or a store that is gone, and what is left of the
// limits is worth more than none.
func (s *Storage) Degraded() (ways []string) {
	disk, keys := diskDegraded(s.Persistence()), memoryDegraded(&s.shortage, s.clock.Now())
	for _, way := range []string{disk, keys, s.Remote.degraded()} {
		if way != "" {
			ways = append(ways, way)
		}
	}
	return ways
}

// Tend starts what the store needs in the background, each part by run; swept is told how long a sweep took.
func (s *Storage) Tend(background context.Context, run func(name string, part func()), swept func(ns int64)) {
	catchUp := func() { noteSuspension(s.log, s.clock.CatchUp()) }
	if s.Tables != nil {
		sweeper := shard.NewSweeper(s.Tables)
		sweeper.Before = catchUp
		sweeper.Took = swept
		run("the sweeper", func() { sweeper.Run(background, s.clock.Now) })
	} else {
		run("the clock", func() { every(background, clockInterval, catchUp) })
	}
	if s.Remote != nil {
		run("the store's health checks", func() { s.Remote.Health.Run(background) })
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

// RemoteStatus returns what tells how the store on other machines is; nil where there is none.
func (s *Storage) RemoteStatus() func() store.Health {
	if s.Remote == nil {
		return nil
	}
	return s.Remote.Health.Health
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

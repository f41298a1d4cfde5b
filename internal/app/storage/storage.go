// Package storage opens the storage of states by the settings: tables in memory, a store on other machines, a
// data directory, the named limits and the bound of memory.
package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/clock"
	"cellserver/internal/base/zones"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/remote"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
)

// Storage keeps the states and the named limits. It is safe for concurrent use.
type Storage struct {
	options  *settings.Options
	log      *slog.Logger
	clock    *clock.Clock
	Store    store.Store
	Tables   *shard.Store      // the store or its fallback; nil for neither
	Gate     *gate.Gate        // of the store
	Changes  *changes.Gatherer // of the tables; nil for a store on other machines
	Remote   *Remote           // nil for none
	Memory   *memory.Bound
	shortage memory.Shortage   // of memory for limiters
	Dir      *disk.OS          // nil without --data-dir
	Envoy    *envoyconfig.Kept // of the directory
	loadedNs atomic.Int64      // the latest time in the directory
	Keeper   *persist.Keeper   // of the directory
	Limits   *namedlimit.Registry
	Stands   func()        // is called after what a start would find has changed; set before Keep
	wall     calendar.Wall // by the server's clock; over a store on other machines theirs is the wall clock

	valueShortage memory.Shortage
}

// Open opens the store, the data directory and the named limits, without loading states.
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

// LogStart logs what Open has found.
func (s *Storage) LogStart() {
	s.logMemory()
	if s.options.LimitsFile != "" {
		byCommand := func(l *namedlimit.Limit) bool { return l.Source == namedlimit.ByCommand }
		s.log.Info("limits read", "file", s.options.LimitsFile, "limits", len(slices.DeleteFunc(s.Limits.All(), byCommand)))
	}
}

// Close closes the store on other machines. Keep closes its own.
func (s *Storage) Close() { s.Remote.close() }

// openStore opens tables, a store on other machines, or that with tables as its fallback.
func (s *Storage) openStore() (err error) {
	if s.options.HasTables() {
		s.Tables = shard.New()
		s.Memory = boundMemory(s.options, s.Tables, s.log)
	} else {
		s.Memory = boundMemory(s.options, noTables{}, s.log)
	}
	if !s.options.IsRemote() {
		s.Store, s.Gate, s.Changes = s.Tables, gate.New(s.Tables, s.clock.Now), changes.New(s.Tables, s.clock.Now)
		s.Gate.BeginLoading() // until there is a role
		return nil
	}
	s.Gate = gate.New(nil, s.clock.Now)
	if s.Remote, err = s.openRemote(); err != nil {
		return err
	}
	s.Store = s.Remote.Store
	if s.Tables != nil {
		s.Store = withTables{s.Remote.Store, s.Tables}
	}
	return nil
}

// Keys returns the number of keys. It takes every shard's lock once.
func (s *Storage) Keys() int {
	var st store.Stats
	s.Store.UpdateStats(&st)
	return st.Keys
}

// noTables is the memory of a server whose keys are elsewhere.
type noTables struct{}

// SetMaxBytes implements store.Bounded.
func (noTables) SetMaxBytes(int64, store.Policy) {}

// SetMaxValueBytes implements store.Bounded.
func (noTables) SetMaxValueBytes(int64) {}

// withTables is a remote store whose figures include its fallback's tables.
type withTables struct {
	*remote.Store
	tables *shard.Store
}

// UpdateStats implements store.Store. The policy counts the tables' decisions.
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

// Ready returns an error while clients should go elsewhere, as changes are not kept or not decided.
func (s *Storage) Ready() error {
	if err := diskReady(s.options, s.Persistence()); err != nil {
		return err
	}
	return s.Remote.ready()
}

// Degraded returns the reasons why a ready server is degraded, one line each, for /readyz and cellserver
// health. A degraded server stays ready: a flood of keys or a lost store degrades the whole fleet at once,
// and what remains of the limits is better than none.
func (s *Storage) Degraded() (reasons []string) {
	nowNs := s.clock.Now()
	keys := memoryDegraded(&s.shortage, nowNs, "keys were evicted and new keys refused in the last minute; raise --maxmemory",
		"keys were evicted in the last minute, and have their full burst again; raise --maxmemory",
		"new keys were refused in the last minute; raise --maxmemory")
	values := memoryDegraded(&s.valueShortage, nowNs, "values were evicted and refused in the last minute; raise --maxmemory-values",
		"values were evicted in the last minute, and evicted counters start again at 0; raise --maxmemory-values",
		"values were refused in the last minute; raise --maxmemory-values")
	for _, reason := range []string{diskDegraded(s.Persistence()), keys, values, s.Remote.degraded()} {
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// Tend starts the store's background work, each part by run; swept gets the duration of each sweep.
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
	if s.Remote == nil {
		s.syncWall()
		run("the wall clock", func() { every(background, wallInterval, s.syncWall) })
	}
	if s.Remote != nil {
		run("the store's health checks", func() { s.Remote.Health.Run(background) })
	}
}

// wallInterval is the interval of comparisons with the wall clock, which may be set.
const wallInterval = time.Second

// syncWall compares the server's clock with the wall clock, by which quotas have their windows.
func (s *Storage) syncWall() {
	if s.Remote != nil {
		return
	}
	beforeNs := s.clock.Now()
	wallNs := time.Now().UnixNano()
	s.wall.Sync(beforeNs, wallNs, s.clock.Now())
}

// clockInterval is the interval of clock comparisons without a sweeper.
const clockInterval = 50 * time.Millisecond

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

// RemoteStatus returns a function for the remote store's health, or nil without one.
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

// spenders returns the stores that know what was spent.
func (s *Storage) spenders() (all []store.Spender) {
	if s.Remote != nil {
		all = append(all, s.Remote.Store)
	}
	if s.Tables != nil {
		all = append(all, s.Tables)
	}
	return all
}

// Spent returns the units spent under a limit by day, or under all if it is empty, as this server has
// decided.
func (s *Storage) Spent(limit string) store.Spends {
	all := store.Spends{}
	for _, by := range s.spenders() {
		for at, units := range by.Spent(limit) {
			all.Add(at, units)
		}
	}
	return all
}

// refusal returns why another server, or the lack of one, refuses changes. Limits know by themselves about
// the disk.
func (s *Storage) refusal() error {
	var refusal gate.Refusal
	if errors.As(s.Gate.Refusal(), &refusal) {
		return refusal
	}
	return nil
}

// openLimits reads the named limits: those defined by commands, from the data directory, and the file's.
func (s *Storage) openLimits() error {
	o := s.options
	s.syncWall()
	config := limitsfile.Config{
		File: o.LimitsFile, Reading: o.Reading(), Repair: o.DataRecover, Log: s.log,
		Now: s.clock.Now, Calendars: calendar.NewSet(&s.wall, zones.Load), Refusal: s.refusal, Spent: s.Spent,
	}
	if s.Dir != nil {
		config.Dir, config.Kept = s.Dir, s.Keeper.NameBeside
	}
	s.Limits = limitsfile.New(config)
	for _, of := range s.spenders() {
		of.SpendBy(s.Limits.SpentAt)
	}
	if err := s.Limits.Load(); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	if o.LimitsFile == "" {
		return nil
	}
	if err := s.Limits.Reload(); err != nil {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return nil
}

// ReloadLimits leaves mistakes to the log.
func (s *Storage) ReloadLimits() { _ = s.Limits.Reload() }

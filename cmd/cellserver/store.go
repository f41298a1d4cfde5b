package main

import (
	"context"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/keep/remote"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// openStore makes what keeps the states: tables in memory, a store on other machines, or that and tables which stand in for it.
func (a *app) openStore() (err error) {
	o := a.options
	if o.hasTables() {
		a.tables = shard.New()
		a.memory = o.boundMemory(a.tables, a.log)
	} else {
		a.memory = o.boundMemory(noTables{}, a.log)
	}
	if !o.isRemote() {
		a.store = a.tables
		return nil
	}
	if a.remote, err = a.openRemote(); err != nil {
		return err
	}
	a.store = a.remote.Store
	if a.tables != nil {
		a.store = withTables{a.remote.Store, a.tables}
	}
	return nil
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

// tendStore starts what the store needs in the background.
func (a *app) tendStore(background context.Context) {
	catchUp := func() { noteSuspension(a.log, a.clock.CatchUp()) }
	if a.tables != nil {
		sweeper := shard.NewSweeper(a.tables)
		sweeper.Before = catchUp
		sweeper.Took = func(ns int64) { a.engine.Records.Latency(observe.SweepEvent, a.now(), ns) }
		a.parts.run("the sweeper", func() { sweeper.Run(background, a.now) })
	} else {
		a.parts.run("the clock", func() { every(background, clockInterval, catchUp) })
	}
	if a.remote != nil {
		a.parts.run("the watch of the store", func() { a.remote.watch.Run(background) })
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
func (a *app) remoteStatus() func() store.Health {
	if a.remote == nil {
		return nil
	}
	return a.remote.watch.Health
}

package storetest

import (
	"bytes"
	"context"
	"runtime"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func brokenWalkers() []broken {
	return []broken{
		{scanMisses{newMemory()}, "Scan"},
		{scanMisses{newMemory()}, "Scan under changes"},
		{scanVisitsExpired{newMemory()}, "Scan"},
		{scanVisitsAll{newMemory()}, "Scan"},
		{countSets{newMemory()}, "Count"},
		{flushesAll{newMemory()}, "Flush and FlushAll"},
		{flushesSome{newMemory()}, "Flush and FlushAll"},
		{absentCosts{newMemory()}, "MemoryUsage"},
		{walksOn{newMemory()}, "ends when nobody waits"},
		{knowsNoNames{newMemory()}, "MemoryUsage"},
	}
}

type scanMisses struct{ memory }

func (s scanMisses) Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(k store.Key, e store.Entry)) uint64 {
	return s.memory.Scan(nowNs, db, cursor, count, func(k store.Key, e store.Entry) {
		if !bytes.HasPrefix(k.Name, []byte("55")) {
			visit(k, e)
		}
	})
}

type scanVisitsExpired struct{ memory }

func (s scanVisitsExpired) Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(k store.Key, e store.Entry)) uint64 {
	return s.memory.Scan(nowNs-1, db, cursor, count, visit)
}

// scanVisitsAll says of other databases' keys that they are of this one.
type scanVisitsAll struct{ memory }

func (s scanVisitsAll) Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(k store.Key, e store.Entry)) uint64 {
	if db > 0 && db < 300 {
		return s.memory.Scan(nowNs, 300, cursor, count, func(k store.Key, e store.Entry) {
			k.DB = db
			visit(k, e)
		})
	}
	return s.memory.Scan(nowNs, db, cursor, count, visit)
}

type countSets struct{ memory }

func (s countSets) Count(ctx context.Context, nowNs int64, counts []store.KeyCount) {
	clear(counts)
	s.memory.Count(ctx, nowNs, counts)
}

type flushesAll struct{ memory }

func (s flushesAll) Flush(context.Context, uint16) { s.FlushAll() }

type flushesSome struct{ memory }

func (s flushesSome) FlushAll() { s.Flush(context.Background(), 0) }

// walksOn walks whether anybody waits or not.
type walksOn struct{ memory }

func (s walksOn) Count(_ context.Context, nowNs int64, counts []store.KeyCount) {
	s.memory.Count(context.Background(), nowNs, counts)
}

type knowsNoNames struct{ memory }

func (s knowsNoNames) UpdateStats(st *store.Stats) {
	s.memory.UpdateStats(st)
	st.NameBytes = st.Keys
}

type absentCosts struct{ memory }

func (s absentCosts) MemoryUsage(nowNs int64, k store.Key) (int, bool) {
	n, _ := s.memory.MemoryUsage(nowNs, k)
	return n + 1, true
}

func brokenBounds() []broken {
	return []broken{
		{neverFull{newMemory()}, "bounded: evicts"},
		{evictsAnyone{newMemory()}, "bounded: evicts what expires soon"},
		{evictsAlways{newMemory()}, "bounded: refuses"},
		{evictsAlways{newMemory()}, "bounded: refuses in a transaction"},
	}
}

type neverFull struct{ memory }

func (s neverFull) SetMaxBytes(int64, store.Policy) {}

// evictsAnyone forgets all keys instead of some.
type evictsAnyone struct{ memory }

func (s evictsAnyone) Throttle(nowNs int64, batch []store.Request) store.Pending {
	var st store.Stats
	if s.UpdateStats(&st); st.Keys > 2000 {
		s.FlushAll()
	}
	return s.memory.Throttle(nowNs, batch)
}

// evictsAlways has one policy.
type evictsAlways struct{ memory }

func (s evictsAlways) SetMaxBytes(maxBytes int64, _ store.Policy) {
	s.memory.SetMaxBytes(maxBytes, store.VolatileTTL)
}

func brokenWatchers() []broken {
	return []broken{
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return neverDirty{w} }}, "Watch: written"},
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return neverDirty{w} }}, "Watch: many of a key"},
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return neverDirty{w} }}, "Watch: read, then written in a transaction"},
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return alwaysDirty{w} }}, "Watch: probed"},
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return blindToExpiry{w} }}, "Watch: live and expires"},
		{badWatches{newMemory(), func(w store.Watch) store.Watch { return addsNothing{w} }}, "Watch: keys are added"},
		{watchesNames{newMemory()}, "Watch: the name in another database"},
		{watchesStates{newMemory()}, "Watch: changed and changed back"},
		{watchesStates{newMemory()}, "Watch: created and deleted"},
	}
}

type badWatches struct {
	memory
	of func(w store.Watch) store.Watch
}

func (s badWatches) Watch(nowNs int64, keys []store.Key) store.Watch {
	return s.of(s.memory.Watch(nowNs, keys))
}

type neverDirty struct{ store.Watch }

func (neverDirty) Dirty(int64) bool { return false }

type alwaysDirty struct{ store.Watch }

func (alwaysDirty) Dirty(int64) bool { return true }

type blindToExpiry struct{ store.Watch }

func (w blindToExpiry) Dirty(int64) bool { return w.Watch.Dirty(t0) }

type addsNothing struct{ store.Watch }

func (addsNothing) Add(int64, []store.Key) {}

// watchesNames watches a name in two databases.
type watchesNames struct{ memory }

func (s watchesNames) Watch(nowNs int64, keys []store.Key) store.Watch {
	w := s.memory.Watch(nowNs, keys)
	for _, k := range keys {
		w.Add(nowNs, []store.Key{{DB: k.DB + 1, Name: k.Name}})
	}
	return w
}

// watchesStates compares states with those that were there.
type watchesStates struct{ memory }

func (s watchesStates) Watch(nowNs int64, keys []store.Key) store.Watch {
	w := &states{s: s.memory, tats: map[id]int64{}}
	w.Add(nowNs, keys)
	return w
}

type states struct {
	s    memory
	keys []store.Key
	tats map[id]int64
}

func (w *states) Add(nowNs int64, keys []store.Key) {
	for _, k := range keys {
		w.keys = append(w.keys, key(k.DB, string(k.Name)))
		w.tats[idOf(k)], _, _ = tatIn(w.s, nowNs, k)
	}
}

func (w *states) Dirty(nowNs int64) bool {
	for _, k := range w.keys {
		if tatNs, _, _ := tatIn(w.s, nowNs, k); max(tatNs, nowNs) != max(w.tats[idOf(k)], nowNs) {
			return true
		}
	}
	return false
}

func (w *states) Close() {}

func brokenTransactors() []broken {
	writesThrough := func(s memory, tx store.Transaction) store.Transaction {
		tx.Rollback()
		return writesThrough{tx, s}
	}
	commits := func(tx store.Transaction) store.Transaction { return rollbackCommits{tx} }
	return []broken{
		{badTx(commits), "a plain map, in transactions"},
		{badTx(commits), "transaction: counted on Commit"},
		{badTx(func(tx store.Transaction) store.Transaction { return commitForgets{tx} }), "transaction: ends once"},
		{badTx(func(tx store.Transaction) store.Transaction { return readsOld{tx} }), "a plain map, in transactions"},
		{badTx(func(tx store.Transaction) store.Transaction { return answersLater{tx} }), "transaction: answers at once"},
		{badTx(func(tx store.Transaction) store.Transaction { return seesNoConflicts{tx} }), "released transaction: the key"},
		{badTx(func(tx store.Transaction) store.Transaction { return setsOnce{tx, map[id]bool{}} }), "a plain map, in transactions"},
		{badTransactions{newMemory(), writesThrough}, "transaction: its own keys"},
		{badTransactions{newMemory(), writesThrough}, "transaction: its own time"},
		{badTransactions{newMemory(), writesThrough}, "released transaction: in step"},
		{openExclusive{newMemory()}, "exclusive: keeps others out"},
		{openExclusive{newMemory()}, "transaction: its own time"},
		{setsAlways{newMemory()}, "Watch: by an exclusive that leaves it as it was"},
	}
}

type badTransactions struct {
	memory
	of func(s memory, tx store.Transaction) store.Transaction
}

func (s badTransactions) Begin(nowNs int64, keys []store.Key) store.Transaction {
	return s.of(s.memory, s.memory.Begin(nowNs, keys))
}

func badTx(of func(tx store.Transaction) store.Transaction) badTransactions {
	return badTransactions{newMemory(), func(_ memory, tx store.Transaction) store.Transaction { return of(tx) }}
}

type rollbackCommits struct{ store.Transaction }

func (tx rollbackCommits) Rollback() { tx.Commit() }

// commitForgets says that it did what it did not.
type commitForgets struct{ store.Transaction }

func (tx commitForgets) Commit() bool {
	tx.Rollback()
	return true
}

// readsOld reads what was there when it began.
type readsOld struct{ store.Transaction }

func (tx readsOld) State(int64, store.Key) (limiter.State, bool, error) {
	return limiter.State{}, false, nil
}

type answersLater struct{ store.Transaction }

func (tx answersLater) Throttle(nowNs int64, batch []store.Request) store.Pending {
	tx.Transaction.Throttle(nowNs, batch)
	return &laterBatch{batch: batch, answered: true}
}

// seesNoConflicts writes over what others have written.
type seesNoConflicts struct{ store.Transaction }

func (tx seesNoConflicts) Commit() bool {
	tx.Transaction.Commit()
	return true
}

// setsOnce takes the first TAT that a key is set to.
type setsOnce struct {
	store.Transaction
	set map[id]bool
}

func (tx setsOnce) Apply(nowNs int64, k store.Key, step store.Step) error {
	if _, is := step.(*store.Setting); is {
		if tx.set[idOf(k)] {
			return nil
		}
		tx.set[idOf(k)] = true
	}
	return tx.Transaction.Apply(nowNs, k, step)
}

// writesThrough is no transaction: it writes to the store at once.
type writesThrough struct {
	store.Transaction
	s memory
}

func (tx writesThrough) Throttle(nowNs int64, batch []store.Request) store.Pending {
	runtime.Gosched()
	return tx.s.Throttle(nowNs, batch)
}
func (tx writesThrough) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	return tx.s.State(nowNs, k)
}
func (tx writesThrough) Delete(nowNs int64, keys []store.Key) (int, error) {
	return tx.s.Delete(nowNs, keys)
}
func (tx writesThrough) Apply(nowNs int64, k store.Key, step store.Step) error {
	return tx.s.Apply(nowNs, k, step)
}
func (tx writesThrough) Commit() bool { return true }

// setsAlways writes what is there already.
type setsAlways struct{ memory }

func (s setsAlways) BeginAll(nowNs int64) store.Exclusive {
	return setter{s.memory.BeginAll(nowNs)}
}

type setter struct{ store.Exclusive }

func (x setter) Save() func() {
	live, _, _ := watchedKeys()
	return func() {
		s, _, _ := x.State(t0, live)
		_, _, _ = store.SetIf(x, t0, live, s, store.Always)
	}
}

// openExclusive keeps nobody out.
type openExclusive struct{ memory }

func (s openExclusive) BeginAll(int64) store.Exclusive { return open(s) }

type open struct{ memory }

func (x open) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	runtime.Gosched()
	return x.memory.State(nowNs, k)
}
func (x open) Save() func() { return func() {} }
func (x open) End()         {}

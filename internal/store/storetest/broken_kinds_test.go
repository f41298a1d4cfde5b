package storetest

import (
	"context"
	"runtime"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func brokenKinds() []broken {
	seesNone := func(tx store.Transaction) store.Transaction { return seesNoConflicts{tx} }
	return []broken{
		{forgetsPayloads{newMemory()}, "kinds: a plain map"},
		{leavesUnits{newMemory()}, "kinds: a plain map"},
		{takesAnyKind{newMemory()}, "kinds: another kind is left as it is"},
		{takesAnyKind{newMemory()}, "kinds: a plain map"},
		{&sharesPayloads{memory: newMemory(), shared: stateMap{}}, "kinds: a payload is the caller's"},
		{countsTwice{newMemory()}, "kinds: one entry a key"},
		{knowsFunnels{newMemory()}, "Scan"},
		{expectsAllToExpire{newMemory()}, "Scan"},
		{costsNames{newMemory()}, "MemoryUsage"},
		{expiresAll{newMemory()}, "kinds: never expires"},
		{&countsNoOperations{memory: newMemory()}, "kinds: statistics"},
		{countsFunnelsOnly{newMemory()}, "kinds: statistics"},
		{losesOperations{newMemory()}, "kinds: concurrent callers"},
		{watchesStates{newMemory()}, "payloads: watched while the word stays"},
		{badTx(seesNone), "payloads: compared while the word stays"},
		{badTx(seesNone), "payloads: asked for too late"},
		{badTx(func(tx store.Transaction) store.Transaction { return undoesNothing{tx} }), "kinds: a plain map, in transactions"},
		{exclusivelyUndoesNothing{newMemory()}, "kinds: a plain map, in an exclusive"},
		{neverFrozen{newMemory()}, "payloads: frozen"},
		{tellsWords{newMemory()}, "payloads: told and restored"},
		{tellsWords{newMemory()}, "payloads: told as they change"},
		{restoresWords{newMemory()}, "payloads: told and restored"},
		{neverFull{newMemory()}, "payloads: bounded by eviction"},
		{evictsAlways{newMemory()}, "payloads: bounded by refusal"},
		{expiresAll{newMemory()}, "bounded: evicts what expires soon"},
	}
}

// forgetsPayloads keeps the word of what SetIf is given.
type forgetsPayloads struct{ memory }

func (s forgetsPayloads) Apply(nowNs int64, k store.Key, step store.Step) error {
	if w, is := step.(*store.Setting); is {
		w.To.Payload = nil
	}
	return s.memory.Apply(nowNs, k, step)
}

// leavesUnits does not tell the units that a request was decided for.
type leavesUnits struct{ memory }

func (s leavesUnits) Throttle(nowNs int64, batch []store.Request) store.Pending {
	before := slices.Clone(batch)
	s.memory.Throttle(nowNs, batch)
	for i := range batch {
		batch[i].Quantity = before[i].Quantity
	}
	return nil
}

// takesAnyKind makes way for another kind.
type takesAnyKind struct{ memory }

func (s takesAnyKind) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.memory.Throttle(nowNs, batch)
	for i := range batch {
		if batch[i].Err != nil {
			_, _ = s.Delete(nowNs, []store.Key{batch[i].Key})
			s.memory.Throttle(nowNs, batch[i:i+1])
		}
	}
	return nil
}

// expectsAllToExpire counts every key as one that expires.
type expectsAllToExpire struct{ memory }

func (s expectsAllToExpire) Count(ctx context.Context, nowNs int64, counts []store.KeyCount) {
	s.memory.Count(ctx, nowNs, counts)
	for i := range counts {
		counts[i].Expiring = counts[i].Keys
	}
}

// sharesPayloads returns the same payload to all.
type sharesPayloads struct {
	memory
	shared stateMap
}

func (s *sharesPayloads) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	state, ok, err := s.memory.State(nowNs, k)
	if shared, found := s.shared[idOf(k)]; found {
		return shared, ok, err
	}
	s.shared[idOf(k)] = state
	return state, ok, err
}

type countsTwice struct{ memory }

func (s countsTwice) UpdateStats(st *store.Stats) {
	s.memory.UpdateStats(st)
	st.Keys *= 2
}

type knowsFunnels struct{ memory }

func (s knowsFunnels) Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(k store.Key, e store.Entry)) uint64 {
	return s.memory.Scan(nowNs, db, cursor, count, func(k store.Key, e store.Entry) {
		e.Kind = limiter.Funnel
		visit(k, e)
	})
}

type costsNames struct{ memory }

func (s costsNames) MemoryUsage(nowNs int64, k store.Key) (int, bool) {
	_, ok := s.memory.MemoryUsage(nowNs, k)
	return len(k.Name), ok
}

// expiresAll has keys expire soon that never would.
type expiresAll struct{ memory }

func (s expiresAll) Apply(nowNs int64, k store.Key, step store.Step) error {
	err := s.memory.Apply(nowNs, k, step)
	if o, is := step.(*limiter.Operation); is && o.Verb == limiter.Fill {
		soon := limiter.Operation{Verb: limiter.Expire, AtNs: nowNs + sec}
		_ = s.memory.Apply(nowNs, k, &soon)
	}
	return err
}

// countsNoOperations counts batches only.
type countsNoOperations struct {
	memory
	allowed, limited uint64
}

func (s *countsNoOperations) Apply(nowNs int64, k store.Key, step store.Step) error {
	before := statsOf(s.memory)
	err := s.memory.Apply(nowNs, k, step)
	after := statsOf(s.memory)
	s.allowed += after.Allowed - before.Allowed
	s.limited += after.Limited - before.Limited
	return err
}

func (s *countsNoOperations) UpdateStats(st *store.Stats) {
	s.memory.UpdateStats(st)
	st.Allowed -= s.allowed
	st.Limited -= s.limited
}

// countsFunnelsOnly counts all requests as those of funnels.
type countsFunnelsOnly struct{ memory }

func (s countsFunnelsOnly) UpdateStats(st *store.Stats) {
	s.memory.UpdateStats(st)
	st.Outcomes = [limiter.Kinds]store.Outcomes{limiter.Funnel: {Allowed: st.Allowed, Limited: st.Limited}}
}

// losesOperations reads a state, lets others at it, and writes it.
type losesOperations struct{ memory }

func (s losesOperations) Apply(nowNs int64, k store.Key, step store.Step) error {
	state, _, _ := s.State(nowNs, k)
	runtime.Gosched()
	changed, err := step.Do(&state, nowNs)
	if changed {
		_, _, err = store.SetIf(s.memory, nowNs, k, state, store.Always)
	}
	return err
}

type undoesNothing struct{ store.Transaction }

func (undoesNothing) Save() func() { return func() {} }

type exclusivelyUndoesNothing struct{ memory }

func (s exclusivelyUndoesNothing) BeginAll(nowNs int64) store.Exclusive {
	return undoesNothingAtAll{s.memory.BeginAll(nowNs)}
}

type undoesNothingAtAll struct{ store.Exclusive }

func (undoesNothingAtAll) Save() func() { return func() {} }

type neverFrozen struct{ memory }

func (neverFrozen) Freeze(int64, error) {}

// tellsWords tells of keys as if all were funnels.
type tellsWords struct{ memory }

func wordOf(c store.Change) store.Change {
	c.State = limiter.State{ExpiresNs: c.State.ExpiresNs}
	return c
}

func (s tellsWords) Changes(nowNs int64, cursor int, visit func(c store.Change)) (next int, complete bool) {
	return s.memory.Changes(nowNs, cursor, func(c store.Change) { visit(wordOf(c)) })
}

func (s tellsWords) States(ctx context.Context, nowNs int64, visit func(c store.Change), between func()) {
	s.memory.States(ctx, nowNs, func(c store.Change) { visit(wordOf(c)) }, between)
}

type restoresWords struct{ memory }

func (s restoresWords) Restore(nowNs int64, part, parts int, changes []store.Change) {
	words := make([]store.Change, len(changes))
	for i, c := range changes {
		words[i] = wordOf(c)
	}
	s.memory.Restore(nowNs, part, parts, words)
}

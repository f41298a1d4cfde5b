package storetest

import (
	"runtime"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func brokenSteps() []broken {
	tx := func(of func(s memory, tx store.Transaction) store.Transaction) badTransactions {
		return badTransactions{newMemory(), of}
	}
	return []broken{
		{knowsSteps{newMemory()}, "kinds: a plain map"},
		{forgetsAnswers{newMemory()}, "kinds: a plain map"},
		{looksThenApplies{newMemory()}, "kinds: concurrent callers"},
		{countsKnownSteps{newMemory()}, "steps: statistics"},
		{tx(func(_ memory, tx store.Transaction) store.Transaction { return knowsStepsTx{tx} }), "kinds: a plain map, in transactions"},
	}
}

func isKnown(step store.Step) bool {
	switch step.(type) {
	case *store.Request, *store.Setting, *limiter.Operation:
		return true
	}
	return false
}

// knowsSteps does those that it knows.
type knowsSteps struct{ memory }

func (s knowsSteps) Apply(nowNs int64, k store.Key, step store.Step) error {
	if !isKnown(step) {
		return nil
	}
	return s.memory.Apply(nowNs, k, step)
}

// knowsStepsTx is knowsSteps in a transaction.
type knowsStepsTx struct{ store.Transaction }

func (tx knowsStepsTx) Apply(nowNs int64, k store.Key, step store.Step) error {
	if !isKnown(step) {
		return nil
	}
	return tx.Transaction.Apply(nowNs, k, step)
}

// forgetsAnswers does a copy.
type forgetsAnswers struct{ memory }

func (s forgetsAnswers) Apply(nowNs int64, k store.Key, step store.Step) error {
	c, take := step.Copy()
	err := s.memory.Apply(nowNs, k, c)
	if isKnown(step) {
		take()
	}
	return err
}

// looksThenApplies lets others at the key in between.
type looksThenApplies struct{ memory }

func (s looksThenApplies) Apply(nowNs int64, k store.Key, step store.Step) error {
	state, _, _ := s.State(nowNs, k)
	runtime.Gosched()
	changed, err := step.Do(&state, nowNs)
	if changed {
		_, _, err = store.SetIf(s.memory, nowNs, k, state, store.Always)
	}
	return err
}

// countsKnownSteps counts only those.
type countsKnownSteps struct{ memory }

func (s countsKnownSteps) Apply(nowNs int64, k store.Key, step store.Step) error {
	if isKnown(step) {
		return s.memory.Apply(nowNs, k, step)
	}
	return s.memory.Apply(nowNs, k, uncounted{step})
}

type uncounted struct{ store.Step }

func (uncounted) Outcome() limiter.Outcome { return limiter.Outcome{} }

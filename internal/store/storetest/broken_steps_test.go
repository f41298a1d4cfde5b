package storetest

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func brokenSteps() []broken {
	return []broken{
		{knowsSteps{newMemory()}, "kinds: a plain map"},
		{forgetsAnswers{newMemory()}, "kinds: a plain map"},
		{countsKnownSteps{newMemory()}, "steps: statistics"},
		{badTx(func(tx store.Transaction) store.Transaction { return knowsStepsTx{tx} }), "kinds: a plain map, in transactions"},
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

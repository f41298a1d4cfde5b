package execute

import (
	"bytes"
	"errors"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
)

// Reserve decides a Holding in one step. On an error nothing has changed.
func (c Call) Reserve(h *decide.Holding) error {
	x := c.x
	h.Begin()
	if err := x.mayMakeKeys(h.Batch); err != nil {
		return err
	}
	do := func(in *transact.Space) error {
		return x.Engine.Decider.Reserve(in.Keys, in.NowNs, h, &x.Scratch.Local)
	}
	h.Tries = x.Engine.Can.AtOnce && !x.Mode.holdsKeys() && h.MayTry() // elsewhere an undo costs more
	err := c.onPairs(h.Pairs, do)
	if h.Tries && errors.Is(err, decide.ErrTryAgain) {
		h.Tries = false
		err = c.onPairs(h.Pairs, do)
	}
	if err != nil {
		return holdFailed(err, &h.Pairs[h.At].Key)
	}
	x.countHeld(h)
	return nil
}

// countHeld counts the decisions, and what is held. A shadow has charged what it would deny as a debit.
func (x *Executor) countHeld(h *decide.Holding) {
	for i := range h.Batch {
		if counts := h.Pairs[i].Named.Counts; h.Holds(i) && counts != nil {
			x.Effects.Count(&counts.Held, 1)
		}
		if q := &h.Batch[i]; q.Result.Marks&funnel.Shadowed != 0 {
			q.Rule.Flags |= limiter.Debit
		}
	}
	x.countNamed(h.Batch)
}

// Settle ends a hold in one step. On an error nothing has changed.
func (c Call) Settle(s *decide.Settling) error {
	x := c.x
	if x.Scratch.limitsNewKeys && x.NewKeys == nil { // of all attempts
		x.NewKeys = &NewKeys{}
		defer func() { x.NewKeys = nil }()
	}
	if err := c.onPairs(s.Pairs, func(in *transact.Space) error {
		if err := x.Engine.Decider.Settle(in.Keys, in.NowNs, s, &x.Scratch.Local); err != nil || len(s.Lost) == 0 {
			return err
		}
		around := x.Space
		defer func() { x.Space = around }()
		x.Space = in
		if err := x.mayMakeKeys(s.Lost); err != nil {
			return err
		}
		_, err := x.Engine.Decider.Each(in.Keys, in.NowNs, s.Lost, &x.Scratch.Local)
		return err
	}); err != nil {
		return holdFailed(err, &s.Pairs[s.At].Key)
	}
	x.countSettled(s)
	x.countSpent(s)
	return nil
}

// countSettled counts what was settled, and the debits.
func (x *Executor) countSettled(s *decide.Settling) {
	tally := &x.Scratch.tally
	for i := range s.Steps {
		step, counts := &s.Steps[i], s.Pairs[i].Named.Counts
		if counts == nil {
			continue
		}
		switch step.State {
		case limiter.OpenHold:
			x.Effects.Count(&counts.Settled, 1)
		case limiter.OverdueHold:
			x.Effects.Count(&counts.Late, 1)
		case limiter.NoHold:
		}
		if step.Debited > 0 {
			by := step.Rule
			by.Flags = limiter.Debit
			tally.Add(&by, step.Debited, &step.Result, x.Effects)
		}
	}
	tally.Flush(x.Effects)
	if len(s.Lost) > 0 {
		x.countNamed(s.Lost)
	}
}

// countSpent counts the units of a settlement, also of pairs that have lost what they held.
func (x *Executor) countSpent(s *decide.Settling) {
	for i := range s.Steps {
		x.spent(&s.Pairs[i].Key, s.Steps[i].Spent)
	}
	for i := range s.Lost {
		q := &s.Lost[i]
		if _, constant := q.Rule.Constantly(); !constant && q.Err == nil {
			x.spent(&q.Key, q.Quantity)
		}
	}
}

// spent counts units that a key has spent by a settlement, if it is of a limit.
func (x *Executor) spent(key *store.Key, units int64) {
	name, _, _ := bytes.Cut(key.Name, []byte{':'}) // no limit's name has a colon
	if limit := x.Engine.Config.NamedLimits.Lookup(name); limit != nil && units > 0 {
		x.Effects.Spend(limit.Spenders(), key, units)
	}
}

// Extend moves the end of a hold in one step. On an error nothing has changed.
func (c Call) Extend(e *decide.Extending) error {
	if err := c.onPairs(e.Pairs, func(in *transact.Space) error {
		return c.x.Engine.Decider.Extend(in.Keys, in.NowNs, e)
	}); err != nil {
		return holdFailed(err, &e.Pairs[e.At].Key)
	}
	return nil
}

// budget does what a call by value asks.
func (c Call) budget(b *decide.Budget) error {
	limits := c.Limits()
	var unknown []byte
	switch b.Verb {
	case decide.Hold:
		h, id, err := argument.HoldingOf(limits, c.DB(), b)
		if err == nil {
			err = c.Reserve(h)
		}
		b.Holding, b.HeldID = h, id
		return err
	case decide.SettleHold:
		s, name, err := argument.SettlingOf(limits, c.DB(), b)
		if err == nil {
			err = c.Settle(s)
		}
		if err != nil {
			return err
		}
		b.State, unknown = s.State, name
	case decide.ExtendHold:
		e, name, err := argument.ExtendingOf(limits, c.DB(), b)
		if err == nil {
			err = c.Extend(e)
		}
		if err != nil {
			return err
		}
		if unknown = name; e.Open {
			b.State = limiter.OpenHold
		}
	}
	if b.State == limiter.NoHold && unknown != nil {
		b.Unknown = unknown
		return argument.NoLimit(unknown)
	}
	return nil
}

// onPairs runs do in one step on the keys of pairs, perhaps in several attempts.
func (c Call) onPairs(pairs []decide.Pair, do func(in *transact.Space) error) error {
	x := c.x
	if !x.Engine.Transacts() {
		return reply.ErrNoTransactions
	}
	keys := make([]store.Key, len(pairs))
	for i := range pairs {
		keys[i] = pairs[i].Key
	}
	j := &x.Scratch.joint // avoids an allocation
	*j = Joint{x: x, keys: keys, do: do}
	err := x.Role.Together(x, j)
	if j.err != nil {
		err = j.err
	}
	*j = Joint{}
	return err
}

// holdFailed returns the reply to an error about a hold on a key.
func holdFailed(err error, key *store.Key) error {
	switch {
	case errors.Is(err, limiter.ErrTooManyHolds):
		return reply.TooManyHolds(key.Name)
	case errors.Is(err, limiter.ErrHoldTaken):
		return reply.ErrHoldTaken
	case errors.Is(err, decide.ErrOverdue):
		return reply.ErrOverdue
	case errors.Is(err, limiter.ErrOtherPairs):
		return reply.ErrPairs
	}
	return reply.StoreFailed(err)
}

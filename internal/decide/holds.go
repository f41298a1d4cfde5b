package decide

import (
	"errors"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Pair is a key under the name of a limit, of a call about a hold. The keys of a call's pairs differ.
type Pair struct {
	Key   store.Key
	Named *limiter.NamedLimit // decides the key now
	Units int64               // held, or used
	Asked int64               // units that must fit for the Units to be held, if they are more

	holding *limiter.NamedLimit // of a Holding
}

var (
	// ErrOverdue reports an id whose hold is overdue. Nothing has changed.
	ErrOverdue = errors.New("decide: the id is an overdue hold's")
	// ErrTryAgain reports a Holding that was tried and has to be decided.
	ErrTryAgain = errors.New("decide: not all pairs could be charged")
)

// Holding holds units of pairs, of all or of none.
type Holding struct {
	Pairs []Pair
	Hold  limiter.Hold
	// Tries is set if all pairs are charged before it is known whether one is limited: most calls are not.
	// If one is, the transaction has to be undone, and the Holding be decided without it.
	Tries   bool
	Precise bool // results in milliseconds, with those of a limit's rules

	Batch   []store.Request // with the results
	Limited bool
	At      int // index of the pair with the error

	find limiter.FindHold // here to avoid an allocation
	held uint64           // the pairs that have the open hold, of a call that is repeated
	rest limiter.Hold     // for those that have lost it
}

// Begin makes the requests anew. Reserve does so itself.
func (h *Holding) Begin() {
	if h.Batch == nil {
		h.Batch = make([]store.Request, len(h.Pairs))
		for i := range h.Pairs {
			p := &h.Pairs[i]
			p.Units = p.Named.Holdable(p.Units)
			if h.Precise {
				p.Named = p.Named.Precise(nil)
			}
			p.holding = p.Named.Holding(&h.Hold)
		}
	}
	for i := range h.Batch {
		p := &h.Pairs[i]
		h.Batch[i] = store.Request{Key: p.Key, Rule: h.rule(p.holding), Quantity: p.Units}
	}
	h.Limited, h.At, h.held = false, 0, 0
}

func (h *Holding) rule(n *limiter.NamedLimit) limiter.Rule {
	r := limiter.OfNamed(n)
	if h.Precise {
		r.Unit = funnel.Milliseconds
	}
	return r
}

// MayTry reports whether Tries may be set: by each request it is known that the id is new.
func (h *Holding) MayTry() bool {
	for i := range h.Pairs {
		if p := &h.Pairs[i]; p.Units < 1 || p.Asked > p.Units || p.Named.Constant != limiter.ByRules {
			return false
		}
	}
	return true
}

// Reserve decides a Holding in a transaction: all pairs hold their units, or none if one is limited, and then
// those that are not have the results of a look. On an error the transaction must be undone.
func (d *Decider) Reserve(tx store.Keys, nowNs int64, h *Holding, local *observe.Local) error {
	h.Begin()
	if err := h.prepare(tx, nowNs); err != nil {
		return err
	}
	tx.Throttle(nowNs, h.Batch)
	charged := false
	for i := range h.Batch {
		q := &h.Batch[i]
		switch h.At = i; {
		case q.Err != nil && h.Tries: // nothing may have to be changed
			return ErrTryAgain
		case q.Err != nil:
			return q.Err
		}
		h.Limited = h.Limited || q.Result.Limited && h.held == 0
		charged = charged || !q.Result.Limited
	}
	if h.Tries && h.Limited && charged {
		return ErrTryAgain
	}
	d.sample(nowNs, h.Batch, local)
	return nil
}

// prepare turns requests into looks where they must not charge.
func (h *Holding) prepare(tx store.Keys, nowNs int64) error {
	if h.Tries {
		return nil
	}
	if !h.Hold.New {
		if err := h.findOpen(tx, nowNs); err != nil {
			return err
		}
	}
	if h.held != 0 {
		h.repeat()
	} else if len(h.Batch) > 1 || h.Pairs[0].Asked > h.Pairs[0].Units {
		return h.foresee(tx, nowNs)
	}
	return nil
}

// repeat has the pairs hold that have lost what they held, also beyond their limits: it was allowed. The
// others are looked at.
func (h *Holding) repeat() {
	for i := range h.Batch {
		q, n := &h.Batch[i], h.Pairs[i].Named
		if h.held>>i&1 != 0 {
			q.Rule, q.Quantity = h.rule(n), 0
			continue
		}
		q.Rule = h.rule(n.Holding(&h.rest))
		q.Rule.Flags = limiter.Debit
	}
}

// Holds reports whether a pair holds units since the Holding was decided.
func (h *Holding) Holds(i int) bool {
	return !h.Limited && h.Batch[i].Quantity > 0 && h.Pairs[i].Named.Constant == limiter.ByRules
}

// findOpen looks for the open hold of an id that the caller chose: the same call again is the same hold.
func (h *Holding) findOpen(tx store.Keys, nowNs int64) error {
	for i := range h.Pairs {
		h.At, h.find = i, limiter.FindHold{ID: h.Hold.ID}
		if err := tx.Apply(nowNs, h.Pairs[i].Key, &h.find); err != nil {
			return err
		}
		switch {
		case h.find.State == limiter.NoHold:
		case h.find.Call != h.Hold.Call:
			return limiter.ErrHoldTaken
		case h.find.State == limiter.OverdueHold:
			return ErrOverdue
		default:
			h.held |= 1 << i
			h.rest = h.Hold
			h.rest.TTLNs = h.find.LeftNs
		}
	}
	return nil
}

// foresee looks whether a request is limited. If one is, the others become looks, which charge nothing.
func (h *Holding) foresee(tx store.Keys, nowNs int64) error {
	allowed := uint64(0)
	for i := range h.Batch {
		q := &h.Batch[i]
		h.At = i
		s, _, err := tx.State(nowNs, q.Key)
		if err != nil {
			return err
		}
		asked := max(q.Quantity, h.Pairs[i].Asked)
		r, _, err := q.Rule.Decide(&s, nowNs, asked)
		if err != nil {
			return err
		}
		h.Limited = h.Limited || r.Limited
		if !r.Limited || asked > q.Quantity { // else decided again, with the same result
			allowed |= 1 << i
		}
	}
	for i := range h.Batch {
		if h.Limited && allowed>>i&1 != 0 {
			h.Batch[i].Quantity = 0
		}
	}
	return nil
}

// Settling ends a hold of pairs with the units used.
type Settling struct {
	Pairs []Pair
	ID    limiter.HoldID
	Hash  uint32 // of the pairs
	// Always debits what was used, also if there is no hold.
	Always bool

	Steps []limiter.Settle  // as done
	State limiter.HoldState // of the hold before
	Lost  []store.Request   // the debits of pairs that have lost it, to be decided
	At    int               // index of the pair with the error
}

// Settle ends a hold in a transaction and makes the debits of the pairs that have lost it. On an error the
// transaction must be undone.
func (d *Decider) Settle(tx store.Keys, nowNs int64, s *Settling, local *observe.Local) error {
	if s.Steps == nil {
		s.Steps = make([]limiter.Settle, len(s.Pairs))
	}
	s.State, s.Lost = limiter.NoHold, s.Lost[:0]
	for i := range s.Pairs {
		p, step := &s.Pairs[i], &s.Steps[i]
		*step = limiter.Settle{Rule: limiter.OfNamed(p.Named), ID: s.ID, Pairs: s.Hash, Used: p.Units}
		s.At = i
		if err := tx.Apply(nowNs, p.Key, step); err != nil {
			return err
		}
		d.Applied(nowNs, p.Key, step, local)
		if s.State == limiter.NoHold || step.State == limiter.OpenHold {
			s.State = step.State
		}
	}
	for i := range s.Pairs {
		if p := &s.Pairs[i]; (s.Always || s.State != limiter.NoHold) && s.Steps[i].State == limiter.NoHold && p.Units > 0 {
			q := store.Request{Key: p.Key, Rule: limiter.OfNamed(p.Named), Quantity: p.Units}
			q.Rule.Flags = limiter.Debit
			s.Lost = append(s.Lost, q)
		}
	}
	return nil
}

// Extending moves the end of a hold.
type Extending struct {
	Pairs []Pair
	ID    limiter.HoldID
	Hash  uint32 // of the pairs
	TTLNs int64

	Open bool // before
	At   int  // index of the pair with the error

	step limiter.Extend
}

// Extend moves the end of a hold in a transaction. On an error it must be undone.
func (d *Decider) Extend(tx store.Keys, nowNs int64, e *Extending) error {
	e.Open = false
	for i := range e.Pairs {
		e.At, e.step = i, limiter.Extend{ID: e.ID, Pairs: e.Hash, TTLNs: e.TTLNs}
		if err := tx.Apply(nowNs, e.Pairs[i].Key, &e.step); err != nil {
			return err
		}
		e.Open = e.Open || e.step.Open
	}
	return nil
}

package limiter

import "cellserver/internal/funnel"

// Step changes a key's state at once, computed from the state. Requests and Operations are steps. A new one
// embeds Base, adds Do and Copy, and works in every store.
type Step interface {
	// Do applies the step to a state, as Rule.Decide does, and keeps the answers. A store may repeat it on
	// another state; the last time counts. The step keeps nothing of the payload.
	Do(s *State, nowNs int64) (changed bool, err error)
	// Traits returns what is known before Do.
	Traits() Traits
	// MakesKey reports whether the step creates an absent key.
	MakesKey() bool
	// Outcome returns the result of Do.
	Outcome() Outcome
	// Copy returns an independent copy for another goroutine, and a function that takes over its answers.
	Copy() (c Step, take func())
}

// Condition restricts a step by the key's presence.
type Condition uint8

const (
	Always Condition = iota
	IfAbsent
	IfFound
)

func (c Condition) Holds(found bool) bool { return c == Always || (c == IfFound) == found }

// Timed is a Step with times of its caller's clock among its arguments or answers.
type Timed interface {
	Step
	// DoBehind is Do by a clock byNs behind the caller's.
	DoBehind(s *State, nowNs, byNs int64) (changed bool, err error)
}

// Traits are properties of a step before Do. The zero Traits permit anything.
type Traits struct {
	Kind         Kind   // most likely the key's
	TAT          Effect // on a funnel's TAT
	KeepsPayload bool   // replaces payloads, never overwrites them
	Absolute     bool   // no time of the new state depends on that of the step
	CountsDenied bool   // limited requests change the state, too
	Joined       bool   // what a transaction does to several keys must not be kept for some of them only
	Spends       bool   // may have Notes of a state without holds
	IntervalNs   uint64 // shortest interval of a unit; 0 for none
}

// Effect is a possible change of a funnel's TAT.
type Effect uint8

// Effects, the greatest first:
const (
	Replaces Effect = iota // arbitrary, or none
	Lowers                 // units may be returned
	Raises                 // never earlier
)

// Outcome is a step's result. Equal Outcomes mean equal answers.
type Outcome struct {
	Requests bool // the store counts the units by the following
	Kind     Kind
	Limited  bool
	Cut      bool // a debit was cut off
	Quantity int64
	Count    int64 // things done
}

// Base is a step without Traits or Outcome.
type Base struct{}

func (Base) Traits() Traits { return Traits{} }

func (Base) MakesKey() bool { return true }

func (Base) Outcome() Outcome { return Outcome{} }

// Traits returns those of a request by the rule.
func (r *Rule) Traits(quantity int64) Traits {
	effect := Raises
	if quantity < 0 {
		effect = Lowers
	}
	n, holds := r.named(), r.Holds()
	return Traits{
		Kind: r.Kind, TAT: effect, CountsDenied: r.Flags&(CountDenied|Debit) != 0 || n != nil && n.blocks, IntervalNs: r.IntervalNs(),
		KeepsPayload: r.Kind == Value && !r.Writes(), Absolute: r.Kind == Value && r.Packed[0] != incrementValue,
		Joined: holds, Spends: holds || r.Kind == Named && r.Flags&Debit != 0,
	}
}

// IntervalNs returns the shortest interval of a unit among the rule's funnels, 0 without any.
func (r *Rule) IntervalNs() (ns uint64) {
	if r.Kind == Funnel {
		return leakNs(&r.Funnel)
	}
	if n := r.named(); n != nil {
		for i := range n.Rules {
			if of := n.Rules[i].Rule.IntervalNs(); of > 0 && (ns == 0 || of < ns) {
				ns = of
			}
		}
	}
	return ns
}

// leakNs returns a funnel's interval, 0 for one without capacity, which denies at any rate.
func leakNs(l *funnel.Limit) uint64 {
	if l.Capacity() == 0 {
		return 0
	}
	return l.IntervalNs()
}

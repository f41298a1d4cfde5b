package limiter

import "cellserver/internal/funnel"

// Step is what is done to a key's state at once: it reads the state, computes, and says what the state is
// then. A request and an Operation are steps. A new one embeds Base, adds Do and Copy, and is then a step of
// every store.
type Step interface {
	// Do does the step to a state at a time, as Rule.Decide does, and keeps the answers. A store may do it
	// again, to another state: then that is what was done. The step keeps nothing of the payload.
	Do(s *State, nowNs int64) (changed bool, err error)
	// Traits returns what a store knows of the step before it is done.
	Traits() Traits
	// MakesKey reports whether the step makes a key where there is none.
	MakesKey() bool
	// Outcome returns what the step has come to.
	Outcome() Outcome
	// Copy returns a copy, with nothing of the caller's buffers, that another goroutine may do, and what
	// takes the answers of that copy over.
	Copy() (c Step, take func())
}

// Timed is a Step that has times of its caller's clock among its arguments or answers.
type Timed interface {
	Step
	// DoBehind is Do by a clock that is so much behind the caller's.
	DoBehind(s *State, nowNs, byNs int64) (changed bool, err error)
}

// Traits are what is known of a step before it is done. The zero Traits are those of one that may do
// anything.
type Traits struct {
	Kind         Kind   // of which the key most likely is
	TAT          Effect // on that of a funnel
	KeepsPayload bool   // it overwrites no payload, but gives a state another one
	Absolute     bool   // the times of a state that it changes are right, however much later that is written
	CountsDenied bool   // a state tells of the step even if it was limited
	IntervalNs   uint64 // the shortest in which a unit leaks; 0 if none does
}

// Effect is what may become of a funnel's TAT.
type Effect uint8

// The effects, of which the least is the greatest:
const (
	Replaces Effect = iota // it may be another, or none
	Lowers                 // units may be given back
	Raises                 // it is what it was, or later
)

// effectOf is the effect of a request.
func effectOf(quantity int64) Effect {
	if quantity < 0 {
		return Lowers
	}
	return Raises
}

// Outcome is what a step has come to. If a step that is done again has the same one, it has the same answers.
type Outcome struct {
	Requests bool // units were requested; then the store counts them by the next three
	Kind     Kind
	Limited  bool
	Quantity int64
	Count    int64 // of what was done
}

// Base has what a new step need not say: it may do anything, and is not counted.
type Base struct{}

func (Base) Traits() Traits { return Traits{} }

func (Base) MakesKey() bool { return true }

func (Base) Outcome() Outcome { return Outcome{} }

// Traits returns those of a request by the rule.
func (r *Rule) Traits(quantity int64) Traits {
	return Traits{
		Kind: r.Kind, TAT: effectOf(quantity), CountsDenied: r.Flags&CountDenied != 0, IntervalNs: r.IntervalNs(),
	}
}

// IntervalNs returns the shortest time in which a unit leaks of one of the rule's funnels; 0 if none does.
func (r *Rule) IntervalNs() uint64 {
	if r.Kind == Funnel {
		return leakNs(&r.Funnel)
	}
	return r.Kind.of().intervalNs(*r)
}

// leakNs returns a funnel's interval; 0 of one that holds nothing, as it denies everything at any rate.
func leakNs(l *funnel.Limit) uint64 {
	if l.Capacity() == 0 {
		return 0
	}
	return l.IntervalNs()
}

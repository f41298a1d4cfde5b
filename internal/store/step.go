package store

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Step is what Apply does to a key's state: a *limiter.Operation, a *Setting, a *Request, or any other. A
// store need not know which.
type Step = limiter.Step

// Do implements Step.
func (q *Request) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	q.Result, changed, err = q.Rule.Decide(s, nowNs, q.Quantity)
	return changed, err
}

// Traits implements Step.
func (q *Request) Traits() limiter.Traits { return q.Rule.Traits(q.Quantity) }

// MakesKey reports whether the request makes a key where there is none.
func (q *Request) MakesKey() bool { return q.Rule.MakesKey(q.Quantity) }

// Outcome implements Step.
func (q *Request) Outcome() limiter.Outcome {
	return limiter.Outcome{Requests: true, Kind: q.Rule.Kind, Quantity: q.Quantity, Limited: q.Result.Limited}
}

// Copy implements Step. The copy has no key.
func (q *Request) Copy() (c Step, take func()) {
	as := &Request{Rule: q.Rule, Quantity: q.Quantity}
	return as, func() { q.Result = as.Result }
}

// End sets Err, beside which there is no Result.
func (q *Request) End(err error) {
	if q.Err = err; err != nil {
		q.Result = funnel.Result{}
	}
}

// Condition says whether a Setting writes, by whether there is a key.
type Condition uint8

// The conditions:
const (
	Always Condition = iota
	IfAbsent
	IfFound
)

// Holds reports whether the condition lets a key be written.
func (c Condition) Holds(found bool) bool { return c == Always || (c == IfFound) == found }

// Setting is the Step that gives a key a state, whatever its kind was, if a condition holds. Its answers are
// what State would have returned before.
type Setting struct {
	To   limiter.State // nothing keeps its payload
	When Condition

	Before limiter.State
	Found  bool
}

// Do implements Step.
func (w *Setting) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	return w.DoBehind(s, nowNs, 0)
}

// DoBehind implements limiter.Timed: the states are those of the caller's clock.
func (w *Setting) DoBehind(s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if w.Before, w.Found = (limiter.State{}), s.ExpiresNs > nowNs; w.Found {
		w.Before = limiter.Shifted(*s, byNs)
	}
	to := limiter.Shifted(w.To, -byNs)
	live := to.ExpiresNs > nowNs
	switch {
	case !w.When.Holds(w.Found) || !w.Found && !live:
		return false, nil
	case live:
		*s = to
	default:
		*s = limiter.State{ExpiresNs: nowNs}
	}
	return true, nil
}

// Traits implements Step.
func (w *Setting) Traits() limiter.Traits {
	return limiter.Traits{Kind: w.To.Kind, KeepsPayload: true, Absolute: true}
}

// MakesKey implements Step.
func (w *Setting) MakesKey() bool { return w.When != IfFound }

// Outcome implements Step.
func (w *Setting) Outcome() limiter.Outcome { return limiter.Outcome{} }

// Copy implements Step.
func (w *Setting) Copy() (c Step, take func()) {
	as := &Setting{To: limiter.Shifted(w.To, 0), When: w.When}
	return as, func() { w.Before, w.Found = as.Before, as.Found }
}

// SetIf applies a Setting, and returns what State would have returned before.
func SetIf(on Keys, nowNs int64, key Key, s limiter.State, when Condition) (before limiter.State, found bool, err error) {
	w := Setting{To: s, When: when}
	err = on.Apply(nowNs, key, &w)
	return w.Before, w.Found, err
}

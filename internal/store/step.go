package store

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Step changes a key's state in Apply: a *limiter.Operation, a *Setting, a *Request or any other. A store
// need not know which.
type Step = limiter.Step

func (q *Request) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	q.Quantity = q.Rule.Units(s, nowNs, q.Quantity)
	return q.Rule.DecideInto(s, nowNs, q.Quantity, &q.Result)
}

// Taken returns the units that a decided request with AtMost was given.
func (q *Request) Taken() int64 { return q.Rule.Taken(q.Quantity, &q.Result) }

func (q *Request) Traits() limiter.Traits { return q.Rule.Traits(q.Quantity) }

func (q *Request) MakesKey() bool { return q.Rule.MakesKey(q.Quantity) }

func (q *Request) Outcome() limiter.Outcome {
	if q.Rule.Kind == limiter.Value { // decides nothing
		return limiter.Outcome{}
	}
	return limiter.Outcome{Requests: true, Kind: q.Rule.Kind, Quantity: q.Quantity, Limited: q.Result.Limited, Cut: q.Result.Marks&funnel.Cut != 0}
}

// Copy implements Step. The copy has no key.
func (q *Request) Copy() (c Step, take func()) {
	as := &Request{Rule: q.Rule, Quantity: q.Quantity}
	return as, func() { q.Quantity, q.Result = as.Quantity, as.Result }
}

// End sets Err, which leaves no Result.
func (q *Request) End(err error) {
	if q.Err = err; err != nil {
		q.Result = funnel.Result{}
	}
}

// Condition restricts a Setting by the key's presence.
type Condition = limiter.Condition

const (
	Always   = limiter.Always
	IfAbsent = limiter.IfAbsent
	IfFound  = limiter.IfFound
)

// Setting is a Step that replaces a key's state of any kind under conditions.
type Setting struct {
	To         limiter.State // its payload is not kept
	When       Condition
	If         *limiter.Comparison // of a live key; nil for none
	KeepExpiry bool                // of a live key
	SetsTAT    bool                // of a live funnel that is set to an integer
	Reads      bool                // sets Before

	Before limiter.State
	Found  bool
	Held   bool // the conditions
}

func (w *Setting) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	return w.DoBehind(s, nowNs, 0)
}

// DoBehind implements limiter.Timed with states of the caller's clock. A comparison is by the store's clock,
// as GET's reply is.
func (w *Setting) DoBehind(s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if w.Before, w.Found = (limiter.State{}), s.ExpiresNs > nowNs; w.Found && w.Reads {
		w.Before = limiter.Shifted(*s, byNs)
	}
	if w.Held = w.When.Holds(w.Found); w.Held && w.Found && w.If != nil {
		w.Held, err = w.If.Holds(s, nowNs)
	}
	if !w.Held {
		return false, err
	}
	to := limiter.Shifted(w.To, -byNs)
	if w.Found && w.KeepExpiry {
		to.ExpiresNs = s.ExpiresNs
	}
	if w.SetsTAT && w.Found && limiter.IsFunnel(s) {
		if to, err = limiter.AsTAT(to, nowNs); err != nil {
			return false, err
		}
	}
	switch live := to.ExpiresNs > nowNs; {
	case live:
		*s = to
	case !w.Found:
		return false, nil
	default:
		*s = limiter.State{ExpiresNs: nowNs}
	}
	return true, nil
}

func (w *Setting) Traits() limiter.Traits {
	return limiter.Traits{Kind: w.To.Kind, KeepsPayload: true, Absolute: true}
}

func (w *Setting) MakesKey() bool { return w.When != IfFound }

func (w *Setting) Outcome() limiter.Outcome { return limiter.Outcome{} }

func (w *Setting) Copy() (c Step, take func()) {
	as := &Setting{To: limiter.Shifted(w.To, 0), When: w.When, If: w.If.Copy(), KeepExpiry: w.KeepExpiry, SetsTAT: w.SetsTAT, Reads: w.Reads}
	return as, func() { w.Before, w.Found, w.Held = as.Before, as.Found, as.Held }
}

// SetIf applies a Setting and returns the previous State.
func SetIf(on Keys, nowNs int64, key Key, s limiter.State, when Condition) (before limiter.State, found bool, err error) {
	w := Setting{To: s, When: when, Reads: true}
	err = on.Apply(nowNs, key, &w)
	return w.Before, w.Found, err
}

// Package limiter is common to all kinds of limiters: states of keys, rules for requests, and other
// operations. It dispatches to the kinds' arithmetic and is as pure: no clock, no state, total.
package limiter

import (
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

var (
	// ErrWrongType reports a key of another kind. Nothing has changed.
	ErrWrongType = errors.New("limiter: the key is of another kind")
	// ErrTooManyOpen reports a key with the maximum of reservations or leases. Nothing has changed.
	ErrTooManyOpen = errors.New("limiter: the key has as many open entries as it may")
)

type Flags uint8

const (
	// CountDenied counts denied requests, too.
	CountDenied Flags = 1 << iota
	// Debit charges all units, also beyond the limit. An exact sliding window and a bucket have none.
	Debit
	// AtMost takes as many of the units as are left. With none it is a request for one, which is limited.
	AtMost
	// MustExpire refuses to make a value that never expires.
	MustExpire
	// NoBlock begins no block of a named limit's rule.
	NoBlock
)

// Packed is a limit in two words, packed by its own arithmetic.
type Packed [2]int64

// Rule is a limiter's kind and parameters. The zero Rule is a funnel without capacity.
type Rule struct {
	Kind   Kind
	Flags  Flags
	Unit   funnel.Unit  // of the results
	Funnel funnel.Limit // of a Funnel
	Packed Packed       // of any other kind; the first word of a Named AtMost is the units asked for
	Shared any          // nil for most kinds; a *NamedLimit for Named, a *calendar.Calendar for Quota, a *Sink or an *Increment for Value
}

// OfFunnel returns the rule of CL.THROTTLE.
func OfFunnel(l funnel.Limit) Rule { return Rule{Funnel: l} }

func (r *Rule) MakesKey(quantity int64) bool {
	if r.Flags&AtMost != 0 {
		quantity = 1 // more are taken only where they fit
	}
	if r.Kind == Funnel {
		return quantity > 0 && (r.Flags&Debit != 0 || r.Funnel.Fits(quantity))
	}
	return r.Kind.of().makesKey(*r, quantity)
}

// Share reduces the rule to a share above 0 and at most 1, but to no less than one unit.
func (r *Rule) Share(share float64) { *r = r.Kind.of().share(*r, share) }

// Full returns a state with all units of the rule available: an absent key's, except for kinds that callers
// fill.
func (r *Rule) Full(nowNs int64) State {
	if r.Kind != Bucket {
		return State{}
	}
	payload, expiresNs := withLevel(nil, nowNs, nowNs, r.Packed[0])
	return State{Kind: Bucket, ExpiresNs: expiresNs, Payload: payload}
}

// Decide decides a request and updates the state, whose payload may be overwritten and appended to. Expired
// states and damaged payloads count as none. changed reports a visible change; otherwise the payload may
// still be tidied within its length.
func (r *Rule) Decide(s *State, nowNs, quantity int64) (result funnel.Result, changed bool, err error) {
	changed, err = r.DecideInto(s, nowNs, quantity, &result)
	return result, changed, err
}

// Units returns the units for which a request is decided: with AtMost as many as are left, but at least 1.
// Of a named limit all rules have them.
func (r *Rule) Units(s *State, nowNs, quantity int64) int64 {
	if r.Flags&AtMost == 0 {
		return quantity
	}
	look, _, _ := r.Decide(s, nowNs, 0) // the request itself has the error
	return max(1, min(quantity, look.Remaining))
}

// Taken returns the units that a request with AtMost was given, of those that it was decided for. A shadow
// denies nothing, so it gives all, whatever it charges.
func (r *Rule) Taken(units int64, result *funnel.Result) int64 {
	switch n := r.named(); {
	case result.Limited:
		return 0
	case n != nil && n.Shadow:
		return r.Packed[0]
	}
	return units
}

// DecideInto is Decide that sets the result in place, as copying fresh stores would stall.
func (r *Rule) DecideInto(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	switch {
	case r.Kind == Named:
		return r.decideNamed(s, nowNs, quantity, result)
	case r.Kind == Value:
		return r.DecideValue(s, nowNs, result)
	case r.Kind == Funnel && s.Kind == Reserving && s.ExpiresNs > nowNs:
		*result, changed, err = r.decideReserving(s, nowNs, quantity)
		return changed, err
	case r.Kind == Quota && r.calendar() == nil:
		*result = funnel.Result{}
		return false, ErrWrongType
	case !s.begin(nowNs, r.Kind):
		if s.hasAlone(r.Kind) {
			return r.decideAlone(s, nowNs, quantity, result)
		}
		*result = funnel.Result{}
		return false, ErrWrongType
	}
	beforeNs := s.ExpiresNs
	switch {
	case r.Kind == Funnel:
		s.ExpiresNs, *result = r.decideFunnel(beforeNs, nowNs, quantity, r.Flags)
		changed = s.ExpiresNs != beforeNs
	case r.Kind == SlidingWindow:
		s.Payload, s.ExpiresNs, changed = r.decideSliding(s.Payload, beforeNs, nowNs, quantity, r.Flags, result)
	case r.Kind == Reserving, r.Kind == Concurrency, r.Kind >= Kinds:
		*result = funnel.Result{}
		return false, ErrWrongType
	default:
		s.Payload, s.ExpiresNs, changed = r.decideSmall(s.Payload, beforeNs, nowNs, quantity, r.Flags, result)
	}
	return changed, nil
}

// Again is Decide that leaves no result, not even in a Precise limit.
func (r *Rule) Again(s *State, nowNs, quantity int64) (changed bool) {
	if n := r.named(); n != nil && n.results != nil {
		own, as := *r, *n
		as.results, own.Shared = nil, &as
		r = &own
	}
	_, changed, _ = r.Decide(s, nowNs, quantity) // an error is no change
	return changed
}

func (r *Rule) decideNamed(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	n := r.named()
	*result = funnel.Result{}
	switch {
	case n == nil:
		return false, ErrWrongType
	case n.Constant != ByRules:
		*result = n.constantly()
		return false, nil
	case s.begin(nowNs, Named):
	case n.adopts(s):
		own := n.adopted(s)
		if changed, err = n.decide(&own, nowNs, quantity, r.Flags, r.Unit, result); changed {
			*s = own
		}
		return changed, err
	default:
		return false, ErrWrongType
	}
	changed, err = n.decide(s, nowNs, quantity, r.Flags, r.Unit, result)
	if n.results != nil && result.Marks&funnel.Shadowed != 0 && r.Flags&Debit == 0 && n.hold == nil {
		n.uncharge(s, nowNs, result)
	}
	return changed, err
}

// Spec is a limit as given in a command, a form or a trace.
type Spec struct {
	Kind    Kind
	Flags   Flags
	Unit    funnel.Unit    // of the period and the results
	Reading funnel.Reading // of a funnel's first number
	Numbers Numbers        // in the order of the kind's arguments

	Calendar *calendar.Calendar // of a Quota
}

// Build sets r to the limit's rule. It returns the arithmetic's errors, or ErrWrongType for a kind without
// arguments; r has no limit then.
func (s *Spec) Build(r *Rule) (err error) {
	*r = Rule{Kind: s.Kind, Flags: s.Flags, Unit: s.Unit}
	switch s.Kind { // a Spec that was just filled in pieces is slow to copy
	case Funnel:
		r.Funnel, err = funnel.NewLimitIn(s.Unit, s.Reading, s.Numbers[0], s.Numbers[1], s.Numbers[2])
	case FixedWindow, ApproxWindow:
		l, wrong := window.NewLimit(s.Unit, s.Numbers[0], s.Numbers[1])
		r.Packed, err = l.Packed(), wrong
	case Quota:
		r.Shared = s.Calendar
		r.Packed, err = quotas{}.build(*s)
	default:
		r.Packed, err = s.Kind.of().build(*s)
	}
	return err
}

// Terms is a compact rule: its kind and its numbers as arguments. The zero Terms are none.
type Terms struct {
	Kind    Kind
	Unit    funnel.Unit
	Numbers Numbers // a funnel's first one is its capacity
}

func (r *Rule) Terms() Terms {
	if r.Kind == Funnel {
		return funnelTerms(r.Unit, r.Funnel)
	}
	return Terms{Kind: r.Kind, Unit: r.Unit, Numbers: r.Kind.of().numbers(*r)}
}

func funnelTerms(unit funnel.Unit, l funnel.Limit) Terms {
	return Terms{Kind: Funnel, Unit: unit, Numbers: funnelNumbers(unit, l)}
}

// Terms returns the terms of an operation's request.
func (o *Operation) Terms() Terms {
	switch o.Verb {
	case Reserve, Wait:
		return funnelTerms(o.Unit, o.Funnel)
	case Acquire:
		return Terms{Kind: Concurrency, Unit: o.Unit, Numbers: Numbers{o.Max}}
	default:
		return Terms{}
	}
}

// Package limiter is what all kinds of limiters have in common: the states that a key may have, the rules that requests are
// decided by, and the operations that are no requests. It dispatches to the arithmetic of each kind, and is pure as they are:
// it has no clock and no state, and is total.
package limiter

import (
	"errors"
	"sync/atomic"

	"cellserver/internal/funnel"
)

var (
	// ErrWrongType is that a key's state is of another kind. Nothing has changed.
	ErrWrongType = errors.New("limiter: the key is of another kind")
	// ErrTooManyOpen means that a key has the most reservations or leases that it may have. Nothing has
	// changed.
	ErrTooManyOpen = errors.New("limiter: the key has as many open entries as it may")
)

// Flags are readings of a Rule.
type Flags uint8

// The flags:
const (
	// CountDenied has requests counted that are denied, too.
	CountDenied Flags = 1 << iota
)

// Packed is a limit in two words, which its own arithmetic packs and unpacks.
type Packed [2]int64

// Shared is what all requests of one limit have in common beyond words.
type Shared interface {
	// Counter returns what counts a request with its result; nil if nothing does.
	Counter(quantity int64, r *funnel.Result) *atomic.Uint64
}

// Rule is a limiter's kind and parameters. The zero Rule is a funnel without capacity.
type Rule struct {
	Kind   Kind
	Flags  Flags
	Unit   funnel.Unit  // of the results
	Funnel funnel.Limit // of a Funnel
	Packed Packed       // of any other kind
	Shared Shared       // nil for most kinds; a *NamedLimit of a Named
}

// OfFunnel returns the rule of CL.THROTTLE.
func OfFunnel(l funnel.Limit) Rule { return Rule{Funnel: l} }

// MakesKey reports whether a request makes a key where there is none.
func (r *Rule) MakesKey(quantity int64) bool {
	if r.Kind == Funnel {
		return r.Funnel.Fits(quantity) && quantity > 0
	}
	return r.Kind.of().makesKey(*r, quantity)
}

// Share changes the rule to that of one of those who divide it up, by a share above 0 and at most 1. It lets at least one unit in if
// the rule did.
func (r *Rule) Share(share float64) { *r = r.Kind.of().share(*r, share) }

// Full returns a state of which all that the rule allows is available: none, but of kinds that callers fill.
func (r *Rule) Full(nowNs int64) State { return r.Kind.of().full(*r, nowNs) }

// Decide decides a request on a key's state, and brings that to what it is then; the payload may be overwritten and appended
// to. What has expired is as good as nothing, and so is a payload that is damaged. changed says whether that is another state for
// anybody; what changes nothing may nevertheless tidy the payload up, within its length.
func (r *Rule) Decide(s *State, nowNs, quantity int64) (result funnel.Result, changed bool, err error) {
	switch {
	case r.Kind == Funnel && s.Kind == Reserving && s.ExpiresNs > nowNs:
		return r.decideReserving(s, nowNs, quantity)
	case !s.begin(nowNs, r.Kind):
		return funnel.Result{}, false, ErrWrongType
	case r.Kind == Funnel:
		tatNs, result := r.Funnel.ThrottleIn(r.Unit, s.ExpiresNs, nowNs, quantity)
		changed = tatNs != s.ExpiresNs
		s.ExpiresNs = tatNs
		return result, changed, nil
	}
	changed, err = r.decideSibling(s, nowNs, quantity, &result)
	return result, changed, err
}

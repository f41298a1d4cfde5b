// Package limiter is what all kinds of limiters have in common: the states that a key may have, the rules that requests are
// decided by, and the operations that are no requests. It dispatches to the arithmetic of each kind, and is pure as they are:
// it has no clock and no state, and is total.
package limiter

import (
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
)

var (
	// ErrWrongType is that a key's state is of another kind. Nothing has changed.
	ErrWrongType = errors.New("limiter: the key is of another kind")
	// ErrTooManyOpen means that a key has the most reservations or leases that it may have. Nothing has
	// changed.
	ErrTooManyOpen = errors.New("limiter: the key has as many open entries as it may")
)

// Kind is what a key's state means. There are no more than fit into three bits.
type Kind uint8

// The kinds:
const (
	Funnel        Kind = iota // expires at its TAT; it has no payload
	Reserving                 // a funnel with reservations; expires when none is open and the funnel is empty
	FixedWindow               // expires when its window ends
	SlidingWindow             // expires when its newest record leaves the window
	ApproxWindow              // likewise
	Bucket                    // never expires, unless it was told to
	Concurrency               // expires when the last lease does
	Named                     // the windows of a named limit
	Kinds
)

// Type is the kind's name, as TYPE says it.
func (k Kind) Type() string {
	return [...]string{
		"string", "string", "cl-window", "cl-slidingwindow", "cl-approxwindow", "cl-bucket", "cl-concurrency", "cl-limit",
	}[k]
}

// NeverNs is when a key expires that does not.
const NeverNs = bucket.NeverNs

// State is what is kept of a key, which expires as soon as its state is as good as none. The zero State is
// that of no key: it has expired.
type State struct {
	Kind      Kind
	ExpiresNs int64  // Unix nanoseconds; a funnel's TAT
	Payload   []byte // what its kind needs beyond that
}

// TAT returns the time at which a funnel will be empty, which is nowNs if it is or there is no key.
func (s *State) TAT(nowNs int64) (tatNs int64, err error) {
	switch {
	case s.ExpiresNs <= nowNs:
		return nowNs, nil
	case s.Kind == Funnel:
		return s.ExpiresNs, nil
	case s.Kind != Reserving:
		return 0, ErrWrongType
	}
	l, ok := reserve.Open(s.Payload)
	if !ok {
		return nowNs, nil
	}
	return l.TATAt(nowNs), nil
}

// begin makes a state that has expired one of the kind, without a payload. It is false if the state is of another kind.
func (s *State) begin(nowNs int64, kind Kind) bool {
	if s.ExpiresNs <= nowNs {
		*s = State{Kind: kind, ExpiresNs: nowNs, Payload: s.Payload[:0]}
	}
	return s.Kind == kind
}

// Flags are readings of a Rule.
type Flags uint8

// The flags:
const (
	// CountDenied has requests counted that are denied, too.
	CountDenied Flags = 1 << iota
)

// Rule is a limiter's kind and parameters. The zero Rule is a funnel without capacity.
type Rule struct {
	Kind   Kind
	Flags  Flags
	Unit   funnel.Unit  // of the results
	Funnel funnel.Limit // of a Funnel
	Window window.Limit // of the windows
	Bucket bucket.Limit // of a Bucket
	Named  *NamedLimit  // of a Named
}

// OfFunnel returns the rule of CL.THROTTLE.
func OfFunnel(l funnel.Limit) Rule { return Rule{Funnel: l} }

// MakesKey reports whether a request makes a key where there is none.
func (r *Rule) MakesKey(quantity int64) bool {
	switch r.Kind {
	case Funnel:
		return r.Funnel.Fits(quantity) && quantity > 0
	case Bucket:
		return quantity < 0
	case Named:
		return quantity > 0 && r.Named != nil && r.Named.fits(quantity)
	default:
		return quantity > 0 && (r.Flags&CountDenied != 0 || r.Window.Fits(quantity))
	}
}

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

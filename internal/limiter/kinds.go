package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

// Kind is what a key's state means. Its number is kept with the state.
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

// of returns what a kind is and does. Adding a kind takes a constant, a case here and a type of its own.
func (k Kind) of() kind {
	switch k {
	case Funnel:
		return funnels{}
	case Reserving:
		return reservations{}
	case FixedWindow:
		return fixedWindows{}
	case SlidingWindow:
		return slidingWindows{}
	case ApproxWindow:
		return approxWindows{}
	case Bucket:
		return buckets{}
	case Concurrency:
		return leases{}
	case Named:
		return namedLimits{}
	default:
		return noKind{}
	}
}

// decideSibling decides for the kinds that have a payload of their own. It sets the result where that is to be: each copy of what
// was just written would have to wait until it is in memory. Direct calls leave what the pointers point to on the stack.
func (r *Rule) decideSibling(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	o := window.Options{Unit: r.Unit, CountDenied: r.Flags&CountDenied != 0}
	switch r.Kind {
	case FixedWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.window().Fixed(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case SlidingWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.window().Sliding(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case ApproxWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.window().Approx(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case Bucket:
		s.Payload, s.ExpiresNs, *result, changed = r.bucket().Take(s.Payload, s.ExpiresNs, nowNs, quantity)
	case Named:
		named := r.named()
		if named == nil {
			return false, ErrWrongType
		}
		changed = named.decide(s, nowNs, quantity, r.Unit, result)
	default:
		return r.decideOther(s, nowNs, quantity, result)
	}
	return changed, nil
}

// decideOther decides for all other kinds, by way of copies.
func (r *Rule) decideOther(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	*s, *result, changed, err = r.Kind.of().decide(*r, *s, nowNs, quantity)
	return changed, err
}

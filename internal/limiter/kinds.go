package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

// Kind is the meaning of a key's state. Its number is stored.
type Kind uint8

// Kinds:
const (
	Funnel        Kind = iota // expires at its TAT; no payload
	Reserving                 // a funnel with reservations; expires with the last one and the TAT
	FixedWindow               // expires with its window
	SlidingWindow             // expires when its newest record leaves the window
	ApproxWindow              // likewise
	Bucket                    // never expires, except by EXPIRE
	Concurrency               // expires with its last lease
	Named                     // the windows of a named limit
	Kinds
)

// of returns a kind's behavior.
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

// decideSibling decides for kinds with a payload. It sets the result in place, as copying fresh stores would
// stall. Direct calls keep the pointers' targets on the stack.
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
		return false, ErrWrongType
	}
	return changed, nil
}

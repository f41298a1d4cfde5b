package limiter

import (
	"errors"

	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/lease"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
)

// ErrDamaged is that a payload is not one of its kind.
var ErrDamaged = errors.New("limiter: the payload is not of its kind")

// Accept is Valid for a state from elsewhere. Such a state of a funnel with reservations may expire too
// late: at its TAT, as the first versions had it, or at the time that Stamps set. Accept corrects that.
func Accept(s *State) error {
	if s.Kind == Reserving {
		s.ExpiresNs = min(s.ExpiresNs, reserve.AsNewNs(s.Payload))
	}
	return Valid(s)
}

// Valid returns ErrDamaged for a state, from a disk or from a client, that no request or operation can have made.
func Valid(s *State) error {
	ok := false
	switch s.Kind {
	case Funnel:
		ok = len(s.Payload) == 0
	case Reserving:
		ok = reserve.Valid(s.Payload, s.ExpiresNs)
	case FixedWindow:
		ok = window.ValidFixed(s.Payload)
	case SlidingWindow:
		ok = window.ValidSliding(s.Payload, s.ExpiresNs)
	case ApproxWindow:
		ok = window.ValidApprox(s.Payload, s.ExpiresNs)
	case Bucket:
		ok = bucket.Valid(s.Payload)
	case Concurrency:
		ok = lease.Valid(s.Payload, s.ExpiresNs)
	case Named:
		ok = validNamed(s.Payload, s.ExpiresNs)
	default:
	}
	if !ok {
		return ErrDamaged
	}
	return nil
}

package limiter

import (
	"bytes"
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/reserve"
)

// ErrDamaged is that a payload is not one of its kind.
var ErrDamaged = errors.New("limiter: the payload is not of its kind")

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

// Left returns how many units are left of a limiter whose expiry does not tell, up to a constant, and 0 of others.
func (s *State) Left() int64 { return s.Kind.of().left(s.Payload) }

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
	if !s.Kind.of().valid(*s) {
		return ErrDamaged
	}
	return nil
}

// Shift brings a state to another clock, by which all is so much later. The payload is changed in place.
func Shift(s *State, byNs int64) {
	if s.ExpiresNs != NeverNs || !s.Kind.Row().Endless { // others' may stand in their payloads, too
		s.ExpiresNs = funnel.Shift(s.ExpiresNs, byNs)
	}
	s.Kind.of().shift(s.Payload, byNs)
}

// Shifted returns a state by another clock, with a payload of its own.
func Shifted(s State, byNs int64) State {
	s.Payload = bytes.Clone(s.Payload)
	if byNs != 0 {
		Shift(&s, byNs)
	}
	return s
}

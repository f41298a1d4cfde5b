package limiter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/hold"
	"cellserver/internal/limiter/reserve"
)

var ErrDamaged = errors.New("limiter: the payload is not of its kind")

// NeverNs is the expiry of a key without one.
const NeverNs = math.MaxInt64

// State is a key's state, which expires when it is as good as none. The zero State, which has expired, is an
// absent key's.
type State struct {
	Kind      Kind
	ExpiresNs int64  // Unix nanoseconds; a funnel's TAT
	Payload   []byte // as its kind needs
	Notes     *Notes // of what becomes of holds; nil in states that are kept
}

// TAT returns a funnel's TAT, nowNs if it is empty or absent.
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

// begin turns an expired state into an empty one of the kind. It returns false for a state of another kind.
func (s *State) begin(nowNs int64, kind Kind) bool {
	if s.ExpiresNs <= nowNs {
		s.Kind, s.ExpiresNs, s.Payload = kind, nowNs, s.Payload[:0] // Notes stay
	}
	return s.Kind == kind
}

// Left returns the remaining units, up to a constant, of limiters whose expiry does not tell; else 0.
func (s *State) Left() int64 { return s.Kind.of().left(s.Payload) }

// Accept is Valid for foreign states. It corrects a funnel with reservations that expires too late: at its
// TAT, as in the first versions, or as after a later change.
func Accept(s *State) error {
	if s.Kind == Reserving {
		s.ExpiresNs = min(s.ExpiresNs, reserve.AsNewNs(s.Payload))
	}
	return Valid(s)
}

// Valid returns ErrDamaged for a state, from a disk or a client, that no request or operation can make.
func Valid(s *State) error {
	if !s.Kind.of().valid(*s) {
		return ErrDamaged
	}
	return nil
}

// Shift adds byNs to every time, in place.
func Shift(s *State, byNs int64) {
	if s.ExpiresNs != NeverNs || !s.Kind.Row().Endless { // other kinds' times may equal it
		s.ExpiresNs = funnel.Shift(s.ExpiresNs, byNs)
	}
	s.Kind.of().shift(s.Payload, byNs)
}

// Form is how a number of a state depends on the time at which the state was last changed.
type Form uint8

const (
	Latest      Form = iota // the latest of some times, each fixed or at a fixed distance after the change
	Earliest                // the earliest of some such times
	LatestOfAll             // the latest number of the state
	AsLater                 // another; the number after a later change is safe before
)

// ExpiresAt is the position of the expiry, which is not in the payload.
const ExpiresAt = -1

// Part tells a number from all others of a state, also after a change at another time: what it is, and of
// which entry.
type Part struct {
	What uint8
	Of   uint64
}

// Visit takes a number of eight bytes, by its position in the payload.
type Visit func(part Part, at int, form Form)

// EachClocked visits the numbers of a live state that depend on the time of the last changes. If no EndNs of
// the state before and after them lies between two times, all else is the same after changes at either, but
// for what has expired in between.
func EachClocked(s *State, visit Visit) { s.Kind.of().clocked(*s, visit) }

// EndNs returns the next time at which a period or a reservation of a state ends: a change after it is
// another one. It is NeverNs for none.
func EndNs(s *State, nowNs int64) int64 {
	if s.ExpiresNs <= nowNs {
		return NeverNs
	}
	return s.Kind.of().endNs(*s, nowNs)
}

func Shifted(s State, byNs int64) State {
	s.Payload = bytes.Clone(s.Payload)
	if byNs != 0 {
		Shift(&s, byNs)
	}
	return s
}

const (
	// MaxPayloadBytes bounds a payload of any kind when it is read, without holds.
	MaxPayloadBytes = 512 << 10
	// MaxStateBytes bounds it with holds.
	MaxStateBytes = MaxPayloadBytes + hold.MaxBytes + otherHeadBytes
)

// A state's encoding in a data directory, a dump and DUMP is, in little endian:
//
//	kind: u8 | expiry: i64 | length of the payload: uvarint | payload
//
// To the kind of a Named payload secondForm is added. Without, its funnels have no interval: earlier versions
// wrote those, and refuse the others.
const (
	encodedHeadBytes = 1 + 8
	secondForm       = 1 << 6
)

func AppendState(b []byte, s *State) []byte {
	kind := byte(s.Kind)
	if s.Kind == Named {
		kind |= secondForm
	}
	b = binary.LittleEndian.AppendUint64(append(b, kind), uint64(s.ExpiresNs))
	return append(binary.AppendUvarint(b, uint64(len(s.Payload))), s.Payload...)
}

// ReadState decodes the first state of b and returns the rest. It returns false for an invalid one. The
// payload is a part of b, but for one in its first form.
func ReadState(b []byte) (s State, rest []byte, ok bool) {
	if s.Kind, s.ExpiresNs, ok = ReadHead(b); !ok {
		return State{}, nil, false
	}
	second := b[0] != byte(s.Kind)
	b = b[encodedHeadBytes:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > MaxStateBytes || length > uint64(len(b)-n) {
		return State{}, nil, false
	}
	b = b[n:]
	rest = b[length:]
	if length > 0 {
		s.Payload = b[:length:length]
	}
	if s.Kind == Named && !second {
		s.Payload = withIntervals(s.Payload)
	}
	return s, rest, Accept(&s) == nil
}

// ReadHead decodes the kind and the expiry of a possibly incomplete state.
func ReadHead(b []byte) (k Kind, expiresNs int64, ok bool) {
	if len(b) < encodedHeadBytes {
		return 0, 0, false
	}
	if k = Kind(b[0]); k == Named|secondForm {
		k = Named
	}
	if k >= Kinds {
		return 0, 0, false
	}
	return k, int64(binary.LittleEndian.Uint64(b[1:])), true
}

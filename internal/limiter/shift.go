package limiter

import (
	"bytes"
	"encoding/binary"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/lease"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
)

// Shift brings a state to another clock, by which all is so much later. The payload is changed in place.
func Shift(s *State, byNs int64) {
	if s.Kind != Bucket || s.ExpiresNs != NeverNs { // others' may stand in their payloads, too
		s.ExpiresNs = funnel.Shift(s.ExpiresNs, byNs)
	}
	switch s.Kind {
	case Reserving:
		reserve.Shift(s.Payload, byNs)
	case SlidingWindow:
		window.ShiftSliding(s.Payload, byNs)
	case ApproxWindow:
		window.ShiftApprox(s.Payload, byNs)
	case Concurrency:
		lease.Shift(s.Payload, byNs)
	case Named:
		for at := 0; at+windowBytes <= len(s.Payload); at += windowBytes {
			tat := s.Payload[at+8:]
			binary.LittleEndian.PutUint64(tat, uint64(funnel.Shift(int64(binary.LittleEndian.Uint64(tat)), byNs)))
		}
	default: // their payloads have no times
	}
}

// Shifted returns a state by another clock, with a payload of its own.
func Shifted(s State, byNs int64) State {
	s.Payload = bytes.Clone(s.Payload)
	if byNs != 0 {
		Shift(&s, byNs)
	}
	return s
}

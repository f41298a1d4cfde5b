package limiter

import "encoding/binary"

// MaxPayloadBytes bounds a payload, of whatever kind, where one is read.
const MaxPayloadBytes = 512 << 10

// A state is the same wherever it is kept or moved to: in a data directory, in a dump, and in what DUMP returns:
//
//	kind: u8 | when it expires: i64 | length of the payload: uvarint | payload
//
// The numbers are little endian.
const encodedHeadBytes = 1 + 8

// AppendState appends a state to what is kept or sent.
func AppendState(b []byte, s *State) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, byte(s.Kind)), uint64(s.ExpiresNs))
	return append(binary.AppendUvarint(b, uint64(len(s.Payload))), s.Payload...)
}

// ReadState returns the state that b begins with, and what is behind it. It is false if there is none, or one that cannot be.
// The payload is a part of b.
func ReadState(b []byte) (s State, rest []byte, ok bool) {
	if len(b) < encodedHeadBytes {
		return State{}, nil, false
	}
	s.Kind, s.ExpiresNs = Kind(b[0]), int64(binary.LittleEndian.Uint64(b[1:]))
	b = b[encodedHeadBytes:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > MaxPayloadBytes || length > uint64(len(b)-n) {
		return State{}, nil, false
	}
	b = b[n:]
	if length > 0 {
		s.Payload = b[:length:length]
	}
	return s, b[length:], Accept(&s) == nil
}

// ReadHead returns of what kind a state is that b begins with, whose rest may be missing, and when it expires. It is false if
// there is none.
func ReadHead(b []byte) (k Kind, expiresNs int64, ok bool) {
	if len(b) < encodedHeadBytes || b[0] >= byte(Kinds) {
		return 0, 0, false
	}
	return Kind(b[0]), int64(binary.LittleEndian.Uint64(b[1:])), true
}

package limiter

import "encoding/binary"

// MaxPayloadBytes bounds a payload of any kind when it is read.
const MaxPayloadBytes = 512 << 10

// A state's encoding in a data directory, a dump and DUMP is, in little endian:
//
//	kind: u8 | expiry: i64 | length of the payload: uvarint | payload
const encodedHeadBytes = 1 + 8

// AppendState appends a state's encoding.
func AppendState(b []byte, s *State) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, byte(s.Kind)), uint64(s.ExpiresNs))
	return append(binary.AppendUvarint(b, uint64(len(s.Payload))), s.Payload...)
}

// ReadState decodes the first state of b and returns the rest. It returns false for an invalid one. The
// payload is a part of b.
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

// ReadHead decodes the kind and the expiry of a possibly incomplete state.
func ReadHead(b []byte) (k Kind, expiresNs int64, ok bool) {
	if len(b) < encodedHeadBytes || b[0] >= byte(Kinds) {
		return 0, 0, false
	}
	return Kind(b[0]), int64(binary.LittleEndian.Uint64(b[1:])), true
}

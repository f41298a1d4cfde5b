// Package rdb reads and writes DUMP payloads: values as in Redis's RDB files, strings for limiters. It is
// safe for concurrent use.
package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"slices"
	"strconv"

	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// A DUMP payload is an RDB value, its type, and a string's length and bytes or an integer, followed by the
// format's version and a CRC-64 of all before. See rdb.c and cluster.c of Redis 7.
const (
	typeString    = 0
	version       = 10 // of Redis 7.0
	newestVersion = 14 // of Redis 8.8, with the same strings

	mostIntDigits   = 11 // of a string stored as an integer
	leastCompressed = 21 // bytes
	savedBytes      = 4  // least that compression must save

	versionBytes  = 2
	checksumBytes = 8

	// headBytes exceeds what surrounds a state's payload in a value and a DUMP payload.
	headBytes = 64
	// maxValueBytes exceeds any state. Longer claims of compressed data are rejected unread.
	maxValueBytes = limiter.MaxStateBytes + headBytes
)

// stateMagic begins the string of a limiter, before limiter.AppendState's bytes, and that of a value whose
// text begins so, too.
const stateMagic = "CELLSTAT"

var (
	// ErrChecksum reports a damaged payload, or a later version's.
	ErrChecksum = errors.New("rdb: the version or the checksum is wrong")
	// ErrFormat reports an invalid payload.
	ErrFormat = errors.New("rdb: bad format")
	// ErrNotState reports what is not a string, and for ReadFunnel, one that is not a funnel's TAT.
	ErrNotState = errors.New("rdb: no value, and no state of a limiter")
	// ErrDamaged reports a value that begins as a limiter's state and cannot be read.
	ErrDamaged = errors.New("rdb: a damaged state of a limiter, or one of a later version")
)

type Codec struct{ table *crc64.Table }

// NewCodec uses the polynomial of Redis's CRC-64, 0xad93d23594c935a9, least significant bit first.
func NewCodec() Codec { return Codec{crc64.MakeTable(0x95ac9329ac4bc9b5)} }

// checksum undoes hash/crc64's inversions.
func (k Codec) checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), k.table, b) }

// Append appends the payload of a value, or of a limiter: its state is a string that Redis's commands cannot
// use.
func (k Codec) Append(b []byte, s *limiter.State) []byte {
	at := len(b)
	b = slices.Grow(b, len(s.Payload)+headBytes)
	b = append(b, typeString)
	if text := limiter.AppendValue(nil, s); s.Kind == limiter.Value && !bytes.HasPrefix(text, []byte(stateMagic)) {
		b = appendString(b, text)
	} else {
		state := limiter.AppendState([]byte(stateMagic), s)
		b = append(appendLength(b, len(state)), state...)
	}
	return k.appendFooter(b, at)
}

// appendString appends a string as Redis does: an integer of at most 32 bits in as few bytes as it takes, or
// what LZF makes shorter.
func appendString(b, text []byte) []byte {
	const int8Of, int16Of, int32Of, compressed = 3 << 6, 3<<6 | 1, 3<<6 | 2, 3<<6 | 3
	if n, ok := resp.ParseInt(text); ok && len(text) <= mostIntDigits {
		le := binary.LittleEndian
		switch {
		case n == int64(int8(n)):
			return append(b, int8Of, byte(n))
		case n == int64(int16(n)):
			return le.AppendUint16(append(b, int16Of), uint16(n))
		case n == int64(int32(n)):
			return le.AppendUint32(append(b, int32Of), uint32(n))
		}
	}
	if len(text) >= leastCompressed {
		if short := compress(text, len(text)-savedBytes); short != nil {
			b = appendLength(appendLength(append(b, compressed), len(short)), len(text))
			return append(b, short...)
		}
	}
	return append(appendLength(b, len(text)), text...)
}

func appendLength(b []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, 1<<6|byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 2<<6), uint32(n))
}

// appendFooter appends the footer for the value from at.
func (k Codec) appendFooter(b []byte, at int) []byte {
	b = binary.LittleEndian.AppendUint16(b, version)
	return binary.LittleEndian.AppendUint64(b, k.checksum(b[at:]))
}

// Read returns a payload's state. A value has no expiry there.
func (k Codec) Read(b []byte) (limiter.State, error) {
	return k.read(b, func(text []byte) (limiter.State, error) { return limiter.ValueOf(text, limiter.NeverNs), nil })
}

// ReadFunnel is Read for payloads of redis-cell's keys, and of a cellserver before it had values: a decimal
// is a funnel's TAT, and may be any number.
func (k Codec) ReadFunnel(b []byte) (limiter.State, error) {
	return k.read(b, func(text []byte) (s limiter.State, err error) {
		var ok bool
		if s.ExpiresNs, ok = resp.ParseInt(text); !ok {
			err = ErrNotState
		}
		return s, err
	})
}

func (k Codec) read(b []byte, other func(text []byte) (limiter.State, error)) (limiter.State, error) {
	text, err := k.readValue(b)
	if err != nil {
		return limiter.State{}, err
	}
	state, ours := bytes.CutPrefix(text, []byte(stateMagic))
	if !ours {
		return other(text)
	}
	s, rest, ok := limiter.ReadState(state)
	if !ok || len(rest) > 0 {
		return limiter.State{}, ErrDamaged
	}
	if s.Kind == limiter.Value {
		s = limiter.ValueOf(limiter.AppendValue(nil, &s), limiter.NeverNs)
	}
	return s, nil
}

func (k Codec) readValue(b []byte) (value []byte, err error) {
	le, end := binary.LittleEndian, len(b)-checksumBytes
	if end < versionBytes || le.Uint16(b[end-versionBytes:]) > newestVersion || le.Uint64(b[end:]) != k.checksum(b[:end]) {
		return nil, ErrChecksum
	}
	b = b[:end-versionBytes]
	switch {
	case len(b) < 2:
		return nil, ErrFormat
	case b[0] != typeString:
		return nil, ErrNotState
	}
	value, rest, err := readString(b[1:])
	if err == nil && len(rest) > 0 {
		return nil, ErrFormat
	}
	return value, err
}

// readString reads the first string of b.
func readString(b []byte) (value, rest []byte, err error) {
	length, encoding, rest, err := readLength(b)
	switch {
	case err != nil:
		return nil, nil, err
	case encoding >= 0:
		return readEncoded(encoding, rest)
	case length > uint64(len(rest)):
		return nil, nil, ErrFormat
	}
	return rest[:length], rest[length:], nil
}

// readLength reads a length of 6 or 14 bits or in following bytes, by its upper two bits, or an encoding,
// which is -1 otherwise.
func readLength(b []byte) (length uint64, encoding int, rest []byte, err error) {
	if len(b) == 0 {
		return 0, 0, nil, ErrFormat
	}
	const bits6 = 1<<6 - 1
	kind, low, rest := b[0]>>6, b[0]&bits6, b[1:]
	switch {
	case kind == 0:
		return uint64(low), -1, rest, nil
	case kind == 1 && len(rest) >= 1:
		return uint64(low)<<8 | uint64(rest[0]), -1, rest[1:], nil
	case kind == 2 && low == 0 && len(rest) >= 4:
		return uint64(binary.BigEndian.Uint32(rest)), -1, rest[4:], nil
	case kind == 2 && low == 1 && len(rest) >= 8:
		return binary.BigEndian.Uint64(rest), -1, rest[8:], nil
	case kind == 3:
		return 0, int(low), rest, nil
	}
	return 0, 0, nil, ErrFormat
}

// readEncoded reads an integer of 1, 2 or 4 bytes, or compressed bytes.
func readEncoded(encoding int, b []byte) (value, rest []byte, err error) {
	const int8Bytes, int16Bytes, int32Bytes, compressed = 0, 1, 2, 3
	var n int64
	switch {
	case encoding == int8Bytes && len(b) >= 1:
		n, rest = int64(int8(b[0])), b[1:]
	case encoding == int16Bytes && len(b) >= 2:
		n, rest = int64(int16(binary.LittleEndian.Uint16(b))), b[2:]
	case encoding == int32Bytes && len(b) >= 4:
		n, rest = int64(int32(binary.LittleEndian.Uint32(b))), b[4:]
	case encoding == compressed:
		return readCompressed(b)
	default:
		return nil, nil, ErrFormat
	}
	return strconv.AppendInt(nil, n, 10), rest, nil
}

// readCompressed reads LZF data: compressed length, length, bytes.
func readCompressed(b []byte) (value, rest []byte, err error) {
	var lengths [2]uint64
	for i := range lengths {
		var encoding int
		if lengths[i], encoding, b, err = readLength(b); err != nil || encoding >= 0 {
			return nil, nil, ErrFormat
		}
	}
	switch {
	case lengths[0] > uint64(len(b)):
		return nil, nil, ErrFormat
	case lengths[1] > maxValueBytes:
		return nil, nil, ErrNotState
	}
	value, ok := decompress(b[:lengths[0]], int(lengths[1]))
	if !ok {
		return nil, nil, ErrFormat
	}
	return value, b[lengths[0]:], nil
}

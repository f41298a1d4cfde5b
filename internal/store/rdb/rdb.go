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
	newestVersion = 12 // of Redis 7.4, with the same strings

	versionBytes  = 2
	checksumBytes = 8

	// headBytes exceeds what surrounds a state's payload in a value and a DUMP payload.
	headBytes = 64
	// maxValueBytes exceeds any state. Longer claims of compressed data are rejected unread.
	maxValueBytes = limiter.MaxPayloadBytes + headBytes
)

// stateMagic begins the string of a limiter other than a funnel, before limiter.AppendState's bytes.
const stateMagic = "CELLSTAT"

var (
	// ErrChecksum reports a damaged payload, or a later version's.
	ErrChecksum = errors.New("rdb: the version or the checksum is wrong")
	// ErrFormat reports an invalid payload.
	ErrFormat = errors.New("rdb: bad format")
	// ErrNotState reports a value that is no limiter's state.
	ErrNotState = errors.New("rdb: no state of a limiter")
	// ErrDamaged reports a value that begins as a limiter's state and is none.
	ErrDamaged = errors.New("rdb: a damaged state of a limiter, or one of a later version")
)

type Codec struct{ table *crc64.Table }

// NewCodec uses the polynomial of Redis's CRC-64, 0xad93d23594c935a9, least significant bit first.
func NewCodec() Codec { return Codec{crc64.MakeTable(0x95ac9329ac4bc9b5)} }

// checksum undoes hash/crc64's inversions.
func (k Codec) checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), k.table, b) }

func (k Codec) Append(b []byte, s *limiter.State) []byte {
	value := AppendValue(make([]byte, 0, len(s.Payload)+headBytes), s)
	at := len(b)
	b = slices.Grow(b, len(value)+headBytes)
	b = append(appendLength(append(b, typeString), len(value)), value...)
	return k.appendFooter(b, at)
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

// Read returns a payload's state. A funnel's TAT may be any number.
func (k Codec) Read(b []byte) (limiter.State, error) {
	value, err := k.readValue(b)
	if err != nil {
		return limiter.State{}, err
	}
	return ReadValue(value)
}

// AppendValue appends a key's string as stored in Redis: a funnel's TAT in decimal, as redis-cell's, or a
// state unreadable to Redis commands.
func AppendValue(b []byte, s *limiter.State) []byte {
	if s.Kind == limiter.Funnel {
		return strconv.AppendInt(b, s.ExpiresNs, 10)
	}
	return limiter.AppendState(append(b, stateMagic...), s)
}

func ReadValue(value []byte) (limiter.State, error) {
	if state, ours := bytes.CutPrefix(value, []byte(stateMagic)); ours {
		s, rest, ok := limiter.ReadState(state)
		if !ok || len(rest) > 0 || s.Kind == limiter.Funnel {
			return limiter.State{}, ErrDamaged
		}
		return s, nil
	}
	tatNs, ok := resp.ParseInt(value)
	if !ok {
		return limiter.State{}, ErrNotState
	}
	return limiter.State{ExpiresNs: tatNs}, nil
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

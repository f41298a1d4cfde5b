package keys

import (
	"encoding/binary"
	"hash/crc64"
	"strconv"

	"cellserver/internal/reply"
)

// A payload of DUMP is a value as in an RDB file: its type, and then, of a string, its length and bytes, or an integer. Behind it
// are the version of the format and a CRC-64 of all before. See rdb.c and cluster.c of Redis 7.
const (
	rdbString     = 0  // the type
	rdbVersion    = 10 // that of Redis 7.0
	newestVersion = 12 // that of Redis 7.4; strings are the same in all

	versionBytes  = 2
	checksumBytes = 8
)

const (
	errChecksum reply.Error = "ERR DUMP payload version or checksum are wrong"
	errFormat   reply.Error = "ERR Bad data format"
)

// codec reads and writes payloads.
type codec struct{ table *crc64.Table }

// newCodec takes the polynomial of Redis's CRC-64, 0xad93d23594c935a9, with the least significant bit first.
func newCodec() codec { return codec{crc64.MakeTable(0x95ac9329ac4bc9b5)} }

// checksum begins with 0 and ends as it is; hash/crc64 inverts both.
func (k codec) checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), k.table, b) }

// append appends the payload of a value of less than 64 bytes.
func (k codec) append(b []byte, value string) []byte {
	b = append(b, rdbString, byte(len(value)))
	b = append(b, value...)
	return k.appendFooter(b)
}

// appendFooter appends what stands behind the value that is all of b.
func (k codec) appendFooter(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, rdbVersion)
	return binary.LittleEndian.AppendUint64(b, k.checksum(b))
}

// read returns the value of a payload.
func (k codec) read(b []byte) (value []byte, err error) {
	le, end := binary.LittleEndian, len(b)-checksumBytes
	if end < versionBytes || le.Uint16(b[end-versionBytes:]) > newestVersion || le.Uint64(b[end:]) != k.checksum(b[:end]) {
		return nil, errChecksum
	}
	b = b[:end-versionBytes]
	switch {
	case len(b) < 2:
		return nil, errFormat
	case b[0] != rdbString:
		return nil, errNotTAT
	}
	return readString(b[1:])
}

// readString reads what begins with a byte that says, in its upper two bits, what follows: a length in 6 bits, in 14, or in
// bytes of their own, or something else than a string's bytes.
func readString(b []byte) (value []byte, err error) {
	const bits6 = 1<<6 - 1
	kind, low, rest := b[0]>>6, b[0]&bits6, b[1:]
	length := uint64(low)
	switch {
	case kind == 0:
	case kind == 1 && len(rest) >= 1:
		length, rest = length<<8|uint64(rest[0]), rest[1:]
	case kind == 2 && low == 0 && len(rest) >= 4:
		length, rest = uint64(binary.BigEndian.Uint32(rest)), rest[4:]
	case kind == 2 && low == 1 && len(rest) >= 8:
		length, rest = binary.BigEndian.Uint64(rest), rest[8:]
	case kind == 3:
		return readEncoded(low, rest)
	default:
		return nil, errFormat
	}
	if length != uint64(len(rest)) {
		return nil, errFormat
	}
	return rest, nil
}

// readEncoded reads an integer of 1, 2 or 4 bytes. What is compressed is longer than any TAT.
func readEncoded(encoding byte, b []byte) (value []byte, err error) {
	const int8Bytes, int16Bytes, int32Bytes, compressed = 0, 1, 2, 3
	var n int64
	switch {
	case encoding == int8Bytes && len(b) == 1:
		n = int64(int8(b[0]))
	case encoding == int16Bytes && len(b) == 2:
		n = int64(int16(binary.LittleEndian.Uint16(b)))
	case encoding == int32Bytes && len(b) == 4:
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	case encoding == compressed:
		return nil, errNotTAT
	default:
		return nil, errFormat
	}
	return strconv.AppendInt(nil, n, 10), nil
}

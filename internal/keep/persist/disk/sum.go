package disk

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// The small files of text end with a line of their checksum in every format, as it is checked before the
// format is believed:
//
//	crc32c 1a2b3c4d
const (
	sumWord  = "crc32c "
	sumBytes = len(sumWord) + 8 + 1
)

// Checksum returns the CRC32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// AppendSum appends the line with its checksum to a text.
func AppendSum(text []byte) []byte { return fmt.Appendf(text, "%s%08x\n", sumWord, Checksum(text)) }

// CutSum cuts that line off, and reports whether it is there and right.
func CutSum(text []byte) (rest []byte, ok bool) {
	at := len(text) - sumBytes
	if at < 0 {
		return text, false
	}
	rest = text[:at:at]
	return rest, bytes.Equal(AppendSum(rest)[at:], text[at:])
}

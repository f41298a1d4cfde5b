package memory

import (
	"errors"
	"strconv"
	"strings"
)

// ErrSize has Redis's words.
var ErrSize = errors.New("argument must be a memory value")

// Parse reads a size as Redis does: bytes, or with a unit in any case: 1k is 1000 bytes, 1kb 1024; likewise m
// and g.
func Parse(text string) (bytes int64, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, ErrSize
	}
	unit, ok := unitBytes(strings.ToLower(text[digits:]))
	if !ok || n > (1<<63-1)/unit {
		return 0, ErrSize
	}
	return n * unit, nil
}

func unitBytes(unit string) (bytes int64, ok bool) {
	switch unit {
	case "", "b":
		return 1, true
	case "k":
		return 1000, true
	case "kb":
		return 1 << 10, true
	case "m":
		return 1000 * 1000, true
	case "mb":
		return 1 << 20, true
	case "g":
		return 1000 * 1000 * 1000, true
	case "gb":
		return 1 << 30, true
	}
	return 0, false
}

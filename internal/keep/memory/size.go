package memory

import (
	"errors"
	"strconv"
	"strings"
)

// ErrSize has Redis's words.
var ErrSize = errors.New("argument must be a memory value")

// Parse reads a size as Redis does: bytes, or with a unit in any case: 1k is 1000 bytes, 1kb 1024, and so
// with m and g.
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

// Part is a size, or a percentage of a maximum.
type Part struct {
	text    string // as set
	bytes   int64
	percent int64 // 0 if bytes count
}

// ErrPart has Redis's words.
var ErrPart = errors.New("argument must be a memory or percent value, such as 64mb or 25%")

// ParsePart reads a size, as Parse does, or a percentage.
func ParsePart(text string) (Part, error) {
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || percent > 100 {
			return Part{}, ErrPart
		}
		return Part{text: text, percent: int64(percent)}, nil
	}
	bytes, err := Parse(text)
	if err != nil {
		return Part{}, ErrPart
	}
	return Part{text: text, bytes: bytes}, nil
}

func (p *Part) String() string { return p.text }

func (p *Part) Set(text string) (err error) {
	*p, err = ParsePart(text)
	return err
}

// SetAbove0 is Set for a part that must not be 0.
func (p *Part) SetAbove0(text string) error {
	part, err := ParsePart(text)
	if err == nil && part.bytes == 0 && part.percent == 0 {
		err = ErrPart
	}
	if err == nil {
		*p = part
	}
	return err
}

// Of returns the part of a maximum in bytes; 0 for no limit.
func (p *Part) Of(maxBytes int64) int64 {
	if p.percent == 0 {
		return p.bytes
	}
	return maxBytes/100*p.percent + maxBytes%100*p.percent/100
}

package memory

import (
	"errors"
	"strconv"
	"strings"
)

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

// Of returns the part of a maximum in bytes; 0 is none.
func (p *Part) Of(maxBytes int64) int64 {
	if p.percent == 0 {
		return p.bytes
	}
	return maxBytes/100*p.percent + maxBytes%100*p.percent/100
}

// Package value is the arithmetic of Redis's strings: counters and texts. It is pure.
package value

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

var (
	// ErrNotInteger reports a text that INCR cannot count on.
	ErrNotInteger = errors.New("value: not an integer or out of range")
	// ErrOverflow reports a count beyond 64 bits.
	ErrOverflow = errors.New("value: increment or decrement would overflow")
	// ErrAppliedOverflow reports a number beyond 64 bits that is added to reach a bound.
	ErrAppliedOverflow = errors.New("value: applied increment would overflow")
	// ErrNotFloat reports a text that INCRBYFLOAT cannot read.
	ErrNotFloat = errors.New("value: not a valid float")
	// ErrNotFinite reports a sum that is not a number.
	ErrNotFinite = errors.New("value: increment would produce NaN or Infinity")
	// ErrInfinite reports a value on which INCREX cannot count.
	ErrInfinite = errors.New("value: value cannot be Infinity")
	// ErrAppliedInfinite reports a number out of range that is added to reach a bound.
	ErrAppliedInfinite = errors.New("value: applied increment would be Infinity")
)

// A payload of counterBytes is a counter in little endian. Any other is a text, followed by a byte if it has
// at least counterBytes.
const (
	counterBytes  = 8
	embeddedBytes = 44 // longest text that Redis stores beside its header
)

// Append appends the payload of a value as SET stores it: an integer as a counter.
func Append(payload, text []byte) []byte {
	if n, ok := parseInt(text); ok {
		return AppendCounter(payload, n)
	}
	return AppendText(payload, text)
}

func AppendCounter(payload []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(payload, uint64(n))
}

// AppendText appends a text's payload, also if it is an integer.
func AppendText(payload, text []byte) []byte {
	payload = append(payload, text...)
	if len(text) >= counterBytes {
		payload = append(payload, 0)
	}
	return payload
}

func TextBytes(payload []byte) int {
	if len(payload) > counterBytes {
		return len(payload) - 1
	}
	return len(payload)
}

func Valid(payload []byte) bool {
	return len(payload) <= counterBytes || payload[len(payload)-1] == 0
}

// Counter returns a counter's number, and false for a text.
func Counter(payload []byte) (n int64, ok bool) {
	if len(payload) != counterBytes {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(payload)), true
}

func IsCounter(payload []byte) bool { return len(payload) == counterBytes }

// Text returns a text, a part of the payload; it must not be a counter's.
func Text(payload []byte) []byte {
	n := TextBytes(payload)
	return payload[:n:n]
}

// AppendTo appends a value in Redis's form.
func AppendTo(b, payload []byte) []byte {
	if n, ok := Counter(payload); ok {
		return strconv.AppendInt(b, n, 10)
	}
	return append(b, Text(payload)...)
}

// Encoding returns the encoding of OBJECT ENCODING.
func Encoding(payload []byte) string {
	switch _, ok := Counter(payload); {
	case ok:
		return "int"
	case len(Text(payload)) <= embeddedBytes:
		return "embstr"
	}
	return "raw"
}

// Integer returns a value's number, and the buffer for the payload of another: a counter's own, as a text is
// not overwritten.
func Integer(payload []byte) (n int64, buffer []byte, err error) {
	if n, ok := Counter(payload); ok {
		return n, payload[:0], nil
	}
	n, ok := parseInt(Text(payload))
	if !ok {
		return 0, nil, ErrNotInteger
	}
	return n, nil, nil
}

// Bounded adds within bounds. ok is false if the sum is out of them, or of 64 bits, and not cut off there.
func Bounded(n, by, least, most int64, saturates bool) (sum int64, ok bool) {
	sum = n + by
	if (sum > n) != (by > 0) { // beyond 64 bits
		if !saturates {
			return 0, false
		}
		if sum = math.MinInt64; by > 0 {
			sum = math.MaxInt64
		}
	}
	if sum >= least && sum <= most {
		return sum, true
	}
	return max(least, min(sum, most)), saturates
}

// Add adds to a value. A counter's payload is changed in place. Calling Integer would make INCR slower.
func Add(payload []byte, by int64) (newPayload []byte, n int64, err error) {
	n, ok := Counter(payload)
	if !ok {
		if n, ok = parseInt(Text(payload)); !ok {
			return payload, 0, ErrNotInteger
		}
		payload = nil // a text's is not overwritten
	}
	sum := n + by
	if (sum > n) != (by > 0) {
		return payload, 0, ErrOverflow
	}
	return AppendCounter(payload[:0], sum), sum, nil
}

// parseInt reads an integer in the only form in which Redis writes it.
func parseInt(text []byte) (n int64, ok bool) {
	const mostDigits = 20 // with a sign
	if len(text) == 0 || len(text) > mostDigits || text[0] != '-' && !isDecimal(text[0]) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	var digits [mostDigits]byte
	return n, err == nil && string(strconv.AppendInt(digits[:0], n, 10)) == string(text)
}

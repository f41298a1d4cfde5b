package vm

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Numbers are read and written as Lua 5.1 and the C library beneath it do.

const spaces = " \t\n\v\f\r"

// ParseNumber reads a number as Lua 5.1 does, like C's strtod: decimal and hexadecimal floats, inf and nan,
// surrounding blanks, and nothing after a NUL.
func ParseNumber(s string) (float64, bool) {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	s = strings.Trim(s, spaces)
	digits, sign := s, ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, digits = s[:1], s[1:]
	}
	if digits == "" {
		return 0, false
	}
	switch strings.ToLower(digits[:min(len(digits), 8)]) {
	case "inf", "infinity", "nan":
		f, err := strconv.ParseFloat(digits, 64)
		if f != f {
			f = math.Float64frombits(plainNaN)
		}
		if sign == "-" {
			f = -f
		}
		return f, err == nil
	}
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' && !strings.ContainsAny(digits, "pP") {
		digits += "p0"
	}
	// Go's errors are expensive, and for it _ separates digits.
	if !IsDigit(digits[0]) && digits[0] != '.' || strings.IndexByte(digits, '_') >= 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(sign+digits, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange) // the values of too large or small numbers are C's
}

func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

func IsHexDigit(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// plainNaN is C's NAN. Go's differs in its lowest bit, which survives arithmetic; the processor's own
// negative NaN is what Lua shows of 1 % 0.
const plainNaN = 0x7ff8000000000000

// AppendNumber appends f as Lua shows it, like C's %.14g.
func AppendNumber(b []byte, f float64) []byte { return appendDigits(b, f, 14) }

// AppendExactNumber appends f as Redis passes it to commands, like C's %.17g.
func AppendExactNumber(b []byte, f float64) []byte { return appendDigits(b, f, 17) }

// appendDigits appends f as C's %.<digits>g does.
func appendDigits(b []byte, f float64, digits int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case f != f && math.Signbit(f) != (math.Float64bits(f)&1 != 0):
		return append(b, "-nan"...)
	case f != f:
		return append(b, "nan"...)
	case f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)):
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', digits, 64)
}

// FormatNumber returns f as Lua shows it.
func FormatNumber(f float64) string {
	var piece [32]byte
	return string(AppendNumber(piece[:0], f))
}

// TruncateNumber is C's cast of a double to a 64-bit integer on x86: overflows become the smallest.
func TruncateNumber(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// ReplyNumber is TruncateNumber for a script's reply, where 2^63 is what a command has replied as 2^63 - 1: a
// double has no nearer number.
func ReplyNumber(f float64) int64 {
	if f == 1<<63 {
		return math.MaxInt64
	}
	return TruncateNumber(f)
}

// ParseInteger reads an integer in a base of 2 to 36, as C's strtoul does.
func ParseInteger(s string, base int) (f float64, ok bool) {
	s = strings.ToLower(strings.Trim(s, spaces))
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		return 0, false
	}
	if base == 16 {
		digits = strings.TrimPrefix(digits, "0x")
	}
	if strings.ContainsAny(digits, "_+-") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, false
	}
	if s[0] == '-' {
		n = -n
	}
	return float64(n), true
}

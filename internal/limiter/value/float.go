package value

import (
	"bytes"
	"math/big"
)

// Redis computes INCRBYFLOAT with long doubles, on x86-64 of a 64-bit mantissa and 15 bits of exponent, and
// prints 17 digits after the point without trailing zeros.
const (
	mantissaBits  = 64
	mostExponent  = 16384  // of 2, with a mantissa below 1
	leastExponent = -16444 // of the smallest number
	printedDigits = 17
	// mostFloatBytes is the longest text that Redis reads.
	mostFloatBytes = 5*1024 - 1
	// mostPower bounds exponents in texts; larger ones overflow, or underflow, whatever the digits are.
	mostPower = 4 * mostFloatBytes
)

// Float is a number with a long double's precision.
type Float struct{ f big.Float }

// ParseFloat reads what C's strtold reads as a whole, but for NaN. It refuses numbers out of range.
func ParseFloat(text []byte) (f Float, ok bool) {
	sign, rest := cutSign(text)
	if len(text) > mostFloatBytes {
		return f, false
	}
	f.f.SetPrec(mantissaBits)
	if lower := bytes.ToLower(rest); string(lower) == "inf" || string(lower) == "infinity" {
		f.f.SetInf(sign)
		return f, true
	}
	if ok, zero := isNumber(rest); !ok {
		return f, false
	} else if zero {
		if f.f.SetInt64(0); sign {
			f.f.Neg(&f.f)
		}
		return f, true
	}
	// A big.Float reads decimals with an error of its own; a fraction is exact.
	r, ok := new(big.Rat).SetString(string(rest))
	if !ok {
		return f, false
	}
	f.f.SetRat(r)
	if exponent := f.f.MantExp(nil); exponent > mostExponent || exponent < leastExponent {
		return f, false
	}
	if sign {
		f.f.Neg(&f.f)
	}
	return f, true
}

func cutSign(text []byte) (negative bool, rest []byte) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		return text[0] == '-', text[1:]
	}
	return false, text
}

// isNumber reports whether a text without sign is a number of C, decimal or hexadecimal, with a bounded
// exponent, and whether all of its digits are 0.
func isNumber(text []byte) (ok, zero bool) {
	isDigit, exponentMark := isDecimal, byte('e')
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		text, isDigit, exponentMark = text[2:], isHex, 'p'
	}
	digits, points, i := 0, 0, 0
	zero = true
	for ; i < len(text) && (isDigit(text[i]) || text[i] == '.' && points == 0); i++ {
		if text[i] == '.' {
			points++
			continue
		}
		digits++
		zero = zero && text[i] == '0'
	}
	if digits == 0 {
		return false, false
	}
	if i == len(text) {
		return true, zero
	}
	if text[i]|0x20 != exponentMark {
		return false, false
	}
	_, power := cutSign(text[i+1:])
	n := 0
	for _, c := range power {
		if !isDecimal(c) {
			return false, false
		}
		n = min(10*n+int(c-'0'), mostPower+1)
	}
	return len(power) > 0 && (zero || n <= mostPower), zero
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// FloatOf returns a value's number.
func FloatOf(payload []byte) (f Float, ok bool) {
	if n, ok := Counter(payload); ok {
		f.f.SetPrec(mantissaBits).SetInt64(n)
		return f, true
	}
	return ParseFloat(Text(payload))
}

// AddFloat returns the text of a sum.
func AddFloat(old, by Float) (text []byte, err error) {
	if old.f.IsInf() || by.f.IsInf() {
		return nil, ErrNotFinite
	}
	f := new(big.Float).SetPrec(mantissaBits).Add(&old.f, &by.f)
	if f.MantExp(nil) > mostExponent {
		return nil, ErrNotFinite
	}
	text = bytes.TrimRight(f.Append(nil, 'f', printedDigits), "0")
	text = bytes.TrimSuffix(text, []byte("."))
	if string(text) == "-0" {
		text = text[1:]
	}
	return text, nil
}

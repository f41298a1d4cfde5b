package value

import (
	"bytes"
	"math"
	"math/big"
)

// Redis computes INCRBYFLOAT with long doubles, on x86-64 of a 64-bit mantissa and 15 bits of exponent, and
// prints 17 digits after the point without trailing zeros.
const (
	mantissaBits  = 64
	mostExponent  = 16384  // of 2, with a mantissa below 1
	leastExponent = -16445 // of 2; smaller numbers are 0
	mostPower     = 4933   // of 10, with a mantissa below 1
	leastPower    = -4950
	// leastDigits begin half of the smallest number, which rounds to 0.
	leastDigits   = "1822599765941237301264202966809709908199"
	printedDigits = 17
	// mostFloatBytes is the longest text that Redis reads.
	mostFloatBytes = 5*1024 - 1
	// keptDigits decide the rounding together with whether any follow.
	keptDigits = 60
	// Numbers below 10^tinyPower print as 0, and only break a tie of a sum, as 2^tinyExponent does.
	tinyPower    = -60
	tinyExponent = -250
)

// Float is a number with a long double's precision.
type Float struct{ f big.Float }

// ParseFloat reads what C's strtold reads as a whole, but for NaN. It refuses numbers out of range.
func ParseFloat(text []byte) (f Float, ok bool) {
	negative, rest := cutSign(text)
	f.f.SetPrec(mantissaBits)
	if lower := bytes.ToLower(rest); string(lower) == "inf" || string(lower) == "infinity" {
		f.f.SetInf(negative)
		return f, true
	}
	n, ok := scanNumber(rest)
	if !ok || len(text) > mostFloatBytes {
		return f, false
	}
	if len(n.digits) > 0 && !f.set(n) {
		return f, false
	}
	if negative {
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

// number is digits times a power of 10, or hexadecimal ones times a power of 2. Without digits it is 0.
type number struct {
	digits []byte
	hex    bool
	power  int
}

// scanNumber reads a number of C without a sign.
func scanNumber(text []byte) (n number, ok bool) {
	isDigit, mark, each := isDecimal, byte('e'), 1
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		text, isDigit, mark, each, n.hex = text[2:], isHex, 'p', 4, true
	}
	found, point, more, i := false, false, false, 0
	for ; i < len(text) && (isDigit(text[i]) || text[i] == '.' && !point); i++ {
		c := text[i]
		if c == '.' {
			point = true
			continue
		}
		found = true
		if point {
			n.power -= each
		}
		switch {
		case len(n.digits) == 0 && c == '0':
		case len(n.digits) < keptDigits:
			n.digits = append(n.digits, c)
		default:
			more = more || c != '0'
			n.power += each
		}
	}
	if more { // the rest is between 0 and a unit
		n.digits, n.power = append(n.digits, '1'), n.power-each
	}
	if !found || i == len(text) {
		return n, found
	}
	power, ok := scanPower(text[i:], mark)
	n.power += power
	return n, ok
}

// scanPower reads an exponent. Large ones are cut to any that is out of range.
func scanPower(text []byte, mark byte) (power int, ok bool) {
	if text[0]|0x20 != mark {
		return 0, false
	}
	negative, digits := cutSign(text[1:])
	for _, c := range digits {
		if !isDecimal(c) {
			return 0, false
		}
		power = min(10*power+int(c-'0'), 1<<20)
	}
	if negative {
		power = -power
	}
	return power, len(digits) > 0
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// set sets f to a number other than 0, rounded once, and reports whether it is in range.
func (f *Float) set(n number) bool {
	base := 10
	if n.hex {
		base = 16
	}
	m, ok := new(big.Int).SetString(string(n.digits), base)
	if !ok {
		return false
	}
	if n.hex {
		f.f.SetInt(m)
		f.f.SetMantExp(&f.f, n.power)
		return f.inRange()
	}
	switch magnitude := len(n.digits) + n.power; {
	case magnitude > mostPower || magnitude < leastPower || magnitude == leastPower && string(n.digits) <= leastDigits:
		return false
	case magnitude < tinyPower:
		f.f.SetMantExp(f.f.SetInt64(1), tinyExponent)
		return true
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.power, -n.power))), nil)
	if n.power >= 0 {
		f.f.SetInt(m.Mul(m, scale))
	} else {
		f.f.SetRat(new(big.Rat).SetFrac(m, scale))
	}
	return f.inRange()
}

func (f *Float) inRange() bool {
	e := f.f.MantExp(nil)
	return e <= mostExponent && e >= leastExponent
}

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
	sum := old.plus(&by, 1)
	if sum.f.IsInf() {
		return nil, ErrNotFinite
	}
	return sum.AppendTo(nil), nil
}

// plus returns a sum, or with a sign of -1 a difference, infinite if it is out of range.
func (f *Float) plus(g *Float, sign int) (sum Float) {
	sum.f.SetPrec(mantissaBits)
	if sign < 0 {
		sum.f.Sub(&f.f, &g.f)
	} else {
		sum.f.Add(&f.f, &g.f)
	}
	if !sum.f.IsInf() && sum.f.MantExp(nil) > mostExponent {
		sum.f.SetInf(sum.f.Signbit())
	}
	return sum
}

// AppendTo appends the number as Redis prints it. It must be finite.
func (f *Float) AppendTo(b []byte) []byte {
	if f.f.MantExp(nil) < tinyExponent/2 {
		return append(b, '0')
	}
	from := len(b)
	b = bytes.TrimSuffix(bytes.TrimRight(f.f.Append(b, 'f', printedDigits), "0"), []byte("."))
	if string(b[from:]) == "-0" {
		return append(b[:from], '0')
	}
	return b
}

// IsInf reports whether the number is infinite.
func (f *Float) IsInf() bool { return f.f.IsInf() }

// Exceeds reports whether the number is greater than another.
func (f *Float) Exceeds(g *Float) bool { return f.f.Cmp(&g.f) > 0 }

// MostFloat returns the greatest number, and below 0 the least.
func MostFloat(sign int) (f Float) {
	f.f.SetPrec(mantissaBits).SetUint64(math.MaxUint64)
	f.f.SetMantExp(&f.f, mostExponent-mantissaBits)
	if sign < 0 {
		f.f.Neg(&f.f)
	}
	return f
}

// BoundedFloat adds finite numbers within bounds, and returns what it has added to the first. ok is false if
// the sum is out of bounds, or not finite, and not cut off there: then it is the first number.
func BoundedFloat(old, by, least, most *Float, saturates bool) (sum, applied Float, ok bool, err error) {
	sum = old.plus(by, 1)
	if sum.IsInf() || least.Exceeds(&sum) || sum.Exceeds(most) {
		if !saturates {
			return *old, applied, false, nil
		}
		switch {
		case least.Exceeds(&sum):
			sum.f.Set(&least.f)
		case sum.Exceeds(most):
			sum.f.Set(&most.f)
		}
	}
	if applied = sum.plus(old, -1); applied.IsInf() {
		return sum, applied, false, ErrAppliedInfinite
	}
	return sum, applied, true, nil
}

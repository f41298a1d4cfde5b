package native

import (
	"bytes"
	"math"

	"cellserver/internal/lua/vm"
)

type kind uint8

const (
	isNil kind = iota
	isFalse
	isTrue
	isNumber
	isText
	isArray
	isStatus // redis.status_reply and the reply OK
	isError  // redis.error_reply
)

// value is one of Lua's. Its text is part of the arguments or of the machine's buffer. An array's number is
// the place of its length in Machine.items, which its elements follow.
type value struct {
	kind   kind
	number float64
	text   []byte
}

func numberOf(f float64) value { return value{kind: isNumber, number: f} }

func textOf(b []byte) value { return value{kind: isText, text: b} }

func boolOf(b bool) value {
	if b {
		return value{kind: isTrue}
	}
	return value{kind: isFalse}
}

func (v *value) set(from value) *value {
	v.kind, v.number, v.text = from.kind, from.number, from.text
	return v
}

func (v *value) setNumber(f float64) *value {
	v.kind, v.number = isNumber, f
	return v
}

func (v *value) setText(b []byte) *value {
	v.kind, v.text = isText, b
	return v
}

func (v *value) setBool(is bool) *value {
	if v.kind = isFalse; is {
		v.kind = isTrue
	}
	return v
}

func (v *value) isTruthy() bool { return v.kind > isFalse }

// typeName returns Lua's name of a value's type.
func (v *value) typeName() string {
	return [...]string{"nil", "boolean", "boolean", "number", "string", "table", "table", "table"}[v.kind]
}

// toNumber is Lua's conversion of an operand.
func (v *value) toNumber() (f float64, ok bool) {
	switch v.kind {
	case isNumber:
		return v.number, true
	case isText:
		return parseNumber(v.text)
	default:
		return 0, false
	}
}

// parseNumber is vm.ParseNumber, fast for short decimals: a mantissa of 15 digits and a power of ten up to
// 15 are exact, and so is their rounded quotient.
func parseNumber(b []byte) (f float64, ok bool) {
	const exactDigits = 15
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	mantissa, fraction, point := int64(0), 0, false
	for _, c := range digits {
		switch {
		case vm.IsDigit(c):
			mantissa = mantissa*10 + int64(c-'0')
			if point {
				fraction++
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		return parseAnyNumber(b)
	}
	isNegative := len(digits) < len(b)
	if len(digits) == 0 || len(digits) > exactDigits || point && len(digits) == 1 || mantissa == 0 && isNegative {
		return parseAnyNumber(b)
	}
	f = float64(mantissa)
	if fraction > 0 {
		f /= math.Pow10(fraction)
	}
	if isNegative {
		f = -f
	}
	return f, true
}

func parseAnyNumber(b []byte) (f float64, ok bool) {
	if len(b) > vm.MaxNumberBytes {
		return 0, false
	}
	return vm.ParseNumber(string(b))
}

// order is a comparison.
type order uint8

const (
	isEqual order = iota
	isLess
	isLessOrEqual
	isMore
	isMoreOrEqual
)

// holds compares two values. Tables are equal by identity, which is not known here, and only numbers or texts
// have an order.
func (o order) holds(a, b *value) (is, known bool) {
	switch {
	case a.kind == isNumber && b.kind == isNumber:
		return o.holdsFor(a.number, b.number), true
	case o == isEqual && a.kind != b.kind:
		return false, true
	case a.kind == isText && b.kind == isText && o == isEqual:
		return bytes.Equal(a.text, b.text), true
	case a.kind == isText && b.kind == isText:
		return o.holdsFor(float64(bytes.Compare(a.text, b.text)), 0), true
	}
	return true, o == isEqual && a.kind < isNumber
}

func (o order) holdsFor(a, b float64) bool {
	switch o {
	case isLess:
		return a < b
	case isLessOrEqual:
		return a <= b
	case isMore:
		return a > b
	case isMoreOrEqual:
		return a >= b
	default:
		return a == b
	}
}

// arithmetic is an operation on numbers. The interpreter's remainder of texts is computed otherwise than that
// of numbers.
func arithmetic(operator byte, a, b float64, texts bool) float64 {
	switch operator {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	case '/':
		return a / b
	case '^':
		return math.Pow(a, b)
	}
	if texts {
		return a - math.Floor(a/b)*b
	}
	f := math.Mod(a, b)
	if b > 0 && f < 0 || b < 0 && f > 0 {
		f += b
	}
	return f
}

package lua

import (
	"math"
	"strconv"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/number"
)

// maxJSONDepth is cjson's default, both ways.
const maxJSONDepth = 1000

// A table is an array for cjson if its keys are positive integers, of which, beyond the first ten, half are there.
const (
	sparseSafe  = 10
	sparseRatio = 2
)

func (st *state) openJSON() {
	t := st.openLibrary("cjson", library{"encode": st.jsonEncode, "decode": st.jsonDecode})
	t.RawSetString("null", st.null)
	t.RawSetString("_NAME", vm.LString("cjson"))
	t.RawSetString("_VERSION", vm.LString("2.1.0"))
}

// A jsonEncoder appends values to out.
type jsonEncoder struct {
	st  *state
	l   *vm.LState
	out []byte
}

func (st *state) jsonEncode(l *vm.LState) int {
	if l.GetTop() != 1 {
		st.raiseArgument(l, 1, "expected 1 argument")
	}
	e := jsonEncoder{st: st, l: l}
	e.value(l.Get(1), 0)
	return st.pushText(l, e.out)
}

func (e *jsonEncoder) fail(v vm.LValue, problem string) {
	e.st.raise(e.l, "Cannot serialise "+v.Type().String()+": "+problem)
}

func (e *jsonEncoder) value(v vm.LValue, depth int) {
	e.st.meter.Spend(2)
	e.st.meter.Charge(16)
	switch x := v.(type) {
	case vm.LString:
		e.text(string(x))
	case vm.LNumber:
		f := float64(x)
		if math.IsInf(f, 0) || math.IsNaN(f) {
			e.fail(v, "must not be NaN or Inf")
		}
		e.out = number.Append(e.out, f)
	case vm.LBool:
		e.out = strconv.AppendBool(e.out, bool(x))
	case *vm.LTable:
		depth++
		if depth > maxJSONDepth {
			e.st.raise(e.l, "Cannot serialise, excessive nesting ("+strconv.Itoa(depth)+")")
		}
		t := e.st.readable(x)
		if n := e.elements(t); n > 0 {
			e.array(t, n, depth)
		} else {
			e.object(t, depth)
		}
	default:
		if v != vm.LNil && v != e.st.null {
			e.fail(v, "type not supported")
		}
		e.out = append(e.out, "null"...)
	}
}

// elements is the length of the array that t is, or less than one.
func (e *jsonEncoder) elements(t *vm.LTable) int {
	most, items := 0.0, 0
	for k, _ := t.Next(vm.LNil); k != vm.LNil; k, _ = t.Next(k) {
		e.st.meter.Spend(1)
		n, ok := k.(vm.LNumber)
		if !ok || n < 1 || float64(n) != math.Floor(float64(n)) {
			return -1
		}
		most = max(most, float64(n))
		items++
	}
	if most > float64(items)*sparseRatio && most > sparseSafe {
		e.fail(t, "excessively sparse array")
	}
	return int(most)
}

func (e *jsonEncoder) array(t *vm.LTable, n, depth int) {
	e.out = append(e.out, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.out = append(e.out, ',')
		}
		e.value(t.RawGet(vm.LNumber(i)), depth)
	}
	e.out = append(e.out, ']')
}

func (e *jsonEncoder) object(t *vm.LTable, depth int) {
	e.out = append(e.out, '{')
	first := true
	for k, v := t.Next(vm.LNil); k != vm.LNil; k, v = t.Next(k) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		switch x := k.(type) {
		case vm.LString:
			e.text(string(x))
		case vm.LNumber:
			e.out = append(number.Append(append(e.out, '"'), float64(x)), '"')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	}
	e.out = append(e.out, '}')
}

func (e *jsonEncoder) text(s string) {
	const hex = "0123456789abcdef"
	e.st.meter.Charge(2 * len(s))
	e.st.meter.Spend(len(s) >> 4)
	before := len(e.out)
	e.out = append(e.out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '/':
			e.out = append(e.out, '\\', c)
		case c == '\b':
			e.out = append(e.out, `\b`...)
		case c == '\t':
			e.out = append(e.out, `\t`...)
		case c == '\n':
			e.out = append(e.out, `\n`...)
		case c == '\f':
			e.out = append(e.out, `\f`...)
		case c == '\r':
			e.out = append(e.out, `\r`...)
		case c < ' ' || c == 0x7f:
			e.out = append(e.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			e.out = append(e.out, c)
		}
	}
	e.out = append(e.out, '"')
	e.st.meter.Charge(len(e.out) - before)
}

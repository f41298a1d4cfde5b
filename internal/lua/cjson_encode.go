package lua

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// cjson encodes a table as an array if its keys are positive integers; beyond ten, half must be present.
const (
	sparseSafe  = 10
	sparseRatio = 2
)

type jsonEncoder struct {
	cjsonLibrary
	l   *lua.LState
	out []byte
}

func (lib cjsonLibrary) encode(l *lua.LState) int {
	if l.GetTop() != 1 {
		lib.RaiseArgument(l, 1, "expected 1 argument")
	}
	e := jsonEncoder{cjsonLibrary: lib, l: l}
	e.value(l.Get(1), 0)
	return lib.PushText(l, e.out)
}

func (e *jsonEncoder) fail(v lua.LValue, problem string) {
	e.Raise(e.l, "Cannot serialise "+v.Type().String()+": "+problem)
}

func (e *jsonEncoder) value(v lua.LValue, depth int) {
	e.Meter.Spend(2)
	e.Meter.Charge(16)
	switch x := v.(type) {
	case lua.LString:
		e.text(string(x))
	case lua.LNumber:
		f := float64(x)
		if math.IsInf(f, 0) || math.IsNaN(f) {
			e.fail(v, "must not be NaN or Inf")
		}
		e.out = vm.AppendNumber(e.out, f)
	case lua.LBool:
		e.out = strconv.AppendBool(e.out, bool(x))
	case *lua.LTable:
		depth++
		if depth > maxJSONDepth {
			e.Raise(e.l, "Cannot serialise, excessive nesting ("+strconv.Itoa(depth)+")")
		}
		t := e.Readable(x)
		if n := e.elements(t); n > 0 {
			e.array(t, n, depth)
		} else {
			e.object(t, depth)
		}
	default:
		if v != lua.LNil && v != e.null {
			e.fail(v, "type not supported")
		}
		e.out = append(e.out, "null"...)
	}
}

// elements returns the length of t as an array, or less than one if t is an object.
func (e *jsonEncoder) elements(t *lua.LTable) int {
	most, items := 0.0, 0
	for k := range vm.Pairs(t) {
		e.Meter.Spend(1)
		n, ok := k.(lua.LNumber)
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

func (e *jsonEncoder) array(t *lua.LTable, n, depth int) {
	e.out = append(e.out, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.out = append(e.out, ',')
		}
		e.value(t.RawGet(lua.LNumber(i)), depth)
	}
	e.out = append(e.out, ']')
}

func (e *jsonEncoder) object(t *lua.LTable, depth int) {
	e.out = append(e.out, '{')
	first := true
	for k, v := range vm.Pairs(t) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		switch x := k.(type) {
		case lua.LString:
			e.text(string(x))
		case lua.LNumber:
			e.out = append(vm.AppendNumber(append(e.out, '"'), float64(x)), '"')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	}
	e.out = append(e.out, '}')
}

func (e *jsonEncoder) text(s string) {
	e.Meter.Charge(2 * len(s))
	before := len(e.out)
	e.out = append(e.out, '"')
	for from, to := range e.Pieces(len(s), jsonBytesPerUnit) {
		e.escaped(s[from:to])
	}
	e.out = append(e.out, '"')
	e.Meter.Charge(len(e.out) - before)
}

func (e *jsonEncoder) escaped(s string) {
	const hex = "0123456789abcdef"
	for i := range len(s) {
		c := s[i]
		if c > '/' && c != '\\' && c != 0x7f {
			e.out = append(e.out, c)
		} else if at := strings.IndexByte(jsonEscaped, c); at >= 0 {
			e.out = append(e.out, '\\', jsonEscapes[at])
		} else if c < ' ' || c == 0x7f {
			e.out = append(e.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			e.out = append(e.out, c)
		}
	}
}

// Escapes after a backslash, and what they stand for.
const (
	jsonEscapes = `"\/bfnrt`
	jsonEscaped = "\"\\/\b\f\n\r\t"
)

// maxJSONDepth is cjson's default, both ways.
const maxJSONDepth = 1000

// jsonBytesPerUnit is the number of bytes of text handled in an instruction's time.
const jsonBytesPerUnit = 8

// cjsonLibrary is Redis's JSON library.
type cjsonLibrary struct {
	*vm.Machine
	null *lua.LUserData
}

func openCJSON(m *vm.Machine) {
	lib := cjsonLibrary{m, m.L.NewUserData()}
	t := m.OpenLibrary("cjson", vm.Functions{"encode": lib.encode, "decode": lib.decode})
	t.RawSetString("null", lib.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
}

package vm

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// OpenMetatables gives strings a library and Lua's arithmetic, as gopher-lua reads "010" as eight and "1_0"
// as ten, and simple types their error messages.
func OpenMetatables(m *Machine, stringFunctions *lua.LTable) {
	stringMeta := m.L.CreateTable(0, 16)
	stringMeta.RawSetString("__index", stringFunctions)
	m.seal(stringMeta)
	m.L.SetMetatable(lua.LString(""), stringMeta)
	for event, f := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": modulo,
		"__pow": math.Pow,
		"__unm": func(a, _ float64) float64 { return -a },
	} {
		stringMeta.RawSetString(event, m.L.NewFunction(func(l *lua.LState) int {
			return m.arithmetic(l, event, f)
		}))
	}
	for _, v := range []lua.LValue{lua.LNil, lua.LFalse, lua.LNumber(0), lua.LString(""), m.L.NewFunction(nil)} {
		meta := stringMeta
		if v.Type() != lua.LTString {
			meta = m.L.CreateTable(0, 3)
			m.L.SetMetatable(v, meta)
			m.complain(meta, "__len", "attempt to get length of a ")
		}
		m.complain(meta, "__call", "attempt to call a ")
		if v.Type() != lua.LTNumber && v.Type() != lua.LTString {
			m.complain(meta, "__unm", "attempt to perform arithmetic on a ")
		}
	}
}

func (m *Machine) complain(meta *lua.LTable, event, problem string) {
	meta.RawSetString(event, m.L.NewFunction(func(l *lua.LState) int {
		m.Raise(l, problem+l.Get(1).Type().String()+" value")
		return 0
	}))
}

// arithmetic is an operation with a string operand; the other may be a table with a metamethod.
func (m *Machine) arithmetic(l *lua.LState, event string, f func(a, b float64) float64) int {
	left, right := l.Get(1), l.Get(2)
	if event == "__unm" {
		right = left
	}
	a, leftOK := m.ToNumber(left)
	b, rightOK := m.ToNumber(right)
	if leftOK && rightOK {
		return Return(l, lua.LNumber(f(a, b)))
	}
	for _, v := range []lua.LValue{left, right} {
		if t, ok := v.(*lua.LTable); ok {
			if other := l.GetMetaField(t, event); other != lua.LNil {
				return Return(l, m.Call1(l, other, left, right))
			}
		}
	}
	culprit := left
	if leftOK {
		culprit = right
	}
	m.Raise(l, "attempt to perform arithmetic on a "+culprit.Type().String()+" value")
	return 0
}

func modulo(a, b float64) float64 { return a - math.Floor(a/b)*b }

package vm

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/guard"
)

// Arguments of native functions, with Lua's conversions and its words for what is wrong with them.

// MaxNumberBytes is how long a string may be that spells a number: reading one must not take long.
const MaxNumberBytes = 16 << 10

// ToNumber returns a number, or the one that a string spells.
func (m *Machine) ToNumber(v lua.LValue) (float64, bool) {
	switch x := v.(type) {
	case lua.LNumber:
		return float64(x), true
	case lua.LString:
		if len(x) > MaxNumberBytes {
			return 0, false
		}
		m.Meter.Spend(len(x) >> 2)
		return guard.ParseNumber(string(x))
	}
	return 0, false
}

// RaiseType says that the n-th argument should be of another type.
func (m *Machine) RaiseType(l *lua.LState, n int, want string) {
	got := "no value"
	if n <= l.GetTop() {
		got = l.Get(n).Type().String()
	}
	m.RaiseArgument(l, n, want+" expected, got "+got)
}

// CheckAny is the n-th argument, which may be nil but must be there.
func (m *Machine) CheckAny(l *lua.LState, n int) lua.LValue {
	if n > l.GetTop() {
		m.RaiseArgument(l, n, "value expected")
	}
	return l.Get(n)
}

// CheckNumber is the n-th argument, which must be a number or spell one.
func (m *Machine) CheckNumber(l *lua.LState, n int) float64 {
	f, ok := m.ToNumber(l.Get(n))
	if !ok {
		m.RaiseType(l, n, "number")
	}
	return f
}

// CheckInt is the n-th argument as an integer, kept so small that sums of two do not overflow.
func (m *Machine) CheckInt(l *lua.LState, n int) int {
	f := m.CheckNumber(l, n)
	const most = math.MaxInt / 4
	switch {
	case f > most:
		return most
	case f < -most:
		return -most
	case math.IsNaN(f):
		return -most
	}
	return int(f)
}

// OptInt is CheckInt with another value for nil.
func (m *Machine) OptInt(l *lua.LState, n, otherwise int) int {
	if l.Get(n) == lua.LNil {
		return otherwise
	}
	return m.CheckInt(l, n)
}

// OptLen is CheckInt with a table's length for nil.
func (m *Machine) OptLen(l *lua.LState, n int, t *lua.LTable) int {
	if l.Get(n) == lua.LNil {
		return t.Len()
	}
	return m.CheckInt(l, n)
}

// CheckString is the n-th argument as text.
func (m *Machine) CheckString(l *lua.LState, n int) string {
	switch x := l.Get(n).(type) {
	case lua.LString:
		return string(x)
	case lua.LNumber:
		return guard.FormatNumber(float64(x))
	}
	m.RaiseType(l, n, "string")
	return ""
}

// OptString is CheckString with another value for nil.
func (m *Machine) OptString(l *lua.LState, n int, otherwise string) string {
	if l.Get(n) == lua.LNil {
		return otherwise
	}
	return m.CheckString(l, n)
}

// CheckTable is the first argument, which must be a table.
func (m *Machine) CheckTable(l *lua.LState) *lua.LTable {
	t, ok := l.Get(1).(*lua.LTable)
	if !ok {
		m.RaiseType(l, 1, "table")
	}
	return t
}

// Writable is the first argument, which must be a table that scripts may change.
func (m *Machine) Writable(l *lua.LState) *lua.LTable {
	t := m.CheckTable(l)
	if m.IsSealed(t) {
		m.ThrowReadOnly(l)
	}
	return t
}

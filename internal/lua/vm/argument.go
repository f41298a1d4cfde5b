package vm

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Arguments and results of native functions, with Lua's conversions and messages.

// Return returns values from a native function.
func Return(l *lua.LState, values ...lua.LValue) (n int) {
	for _, v := range values {
		l.Push(v)
	}
	return len(values)
}

// MaxNumberBytes bounds a string that spells a number, and the time to read it.
const MaxNumberBytes = 16 << 10

// ToNumber converts a number or a string that spells one.
func (m *Machine) ToNumber(v lua.LValue) (float64, bool) {
	switch x := v.(type) {
	case lua.LNumber:
		return float64(x), true
	case lua.LString:
		if len(x) > MaxNumberBytes {
			return 0, false
		}
		m.Meter.Spend(len(x) >> 2)
		return ParseNumber(string(x))
	}
	return 0, false
}

// RaiseType raises an error about the n-th argument's type.
func (m *Machine) RaiseType(l *lua.LState, n int, want string) {
	got := "no value"
	if n <= l.GetTop() {
		got = l.Get(n).Type().String()
	}
	m.RaiseArgument(l, n, want+" expected, got "+got)
}

// CheckAny returns the n-th argument, which may be nil but must be present.
func (m *Machine) CheckAny(l *lua.LState, n int) lua.LValue {
	if n > l.GetTop() {
		m.RaiseArgument(l, n, "value expected")
	}
	return l.Get(n)
}

// CheckNumber returns the n-th argument, a number or a string that spells one.
func (m *Machine) CheckNumber(l *lua.LState, n int) float64 {
	f, ok := m.ToNumber(l.Get(n))
	if !ok {
		m.RaiseType(l, n, "number")
	}
	return f
}

// CheckInt returns the n-th argument as an integer, limited so that sums of two do not overflow.
func (m *Machine) CheckInt(l *lua.LState, n int) int {
	const most = math.MaxInt / 4
	f := m.CheckNumber(l, n)
	if math.IsNaN(f) {
		return -most
	}
	return int(min(max(f, -most), most))
}

// OptInt is CheckInt with a default for nil.
func (m *Machine) OptInt(l *lua.LState, n, otherwise int) int {
	if l.Get(n) == lua.LNil {
		return otherwise
	}
	return m.CheckInt(l, n)
}

// CheckString returns the n-th argument as text.
func (m *Machine) CheckString(l *lua.LState, n int) string {
	switch x := l.Get(n).(type) {
	case lua.LString:
		return string(x)
	case lua.LNumber:
		return FormatNumber(float64(x))
	}
	m.RaiseType(l, n, "string")
	return ""
}

// OptString is CheckString with a default for nil.
func (m *Machine) OptString(l *lua.LState, n int, otherwise string) string {
	if l.Get(n) == lua.LNil {
		return otherwise
	}
	return m.CheckString(l, n)
}

// CheckTable returns the first argument, a table.
func (m *Machine) CheckTable(l *lua.LState) *lua.LTable {
	t, ok := l.Get(1).(*lua.LTable)
	if !ok {
		m.RaiseType(l, 1, "table")
	}
	return t
}

// Writable returns the first argument, a table that scripts may change.
func (m *Machine) Writable(l *lua.LState) *lua.LTable {
	t := m.CheckTable(l)
	if m.IsSealed(t) {
		m.ThrowReadOnly(l)
	}
	return t
}

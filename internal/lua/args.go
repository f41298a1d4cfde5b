package lua

import (
	"math"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/number"
)

// Arguments of native functions, with Lua's conversions and its words for what is wrong with them.

func (st *state) toNumber(v vm.LValue) (float64, bool) {
	switch x := v.(type) {
	case vm.LNumber:
		return float64(x), true
	case vm.LString:
		st.meter.Spend(len(x) >> 4)
		return number.Parse(string(x))
	}
	return 0, false
}

func (st *state) raiseType(l *vm.LState, n int, want string) {
	got := "no value"
	if n <= l.GetTop() {
		got = l.Get(n).Type().String()
	}
	st.raiseArgument(l, n, want+" expected, got "+got)
}

func (st *state) checkAny(l *vm.LState, n int) vm.LValue {
	if n > l.GetTop() {
		st.raiseArgument(l, n, "value expected")
	}
	return l.Get(n)
}

func (st *state) checkNumber(l *vm.LState, n int) float64 {
	f, ok := st.toNumber(l.Get(n))
	if !ok {
		st.raiseType(l, n, "number")
	}
	return f
}

// checkInt is an integer argument, kept so small that sums of two do not overflow.
func (st *state) checkInt(l *vm.LState, n int) int {
	f := st.checkNumber(l, n)
	const bound = math.MaxInt / 4
	switch {
	case f > bound:
		return bound
	case f < -bound:
		return -bound
	case math.IsNaN(f):
		return -bound
	}
	return int(f)
}

func (st *state) optInt(l *vm.LState, n, otherwise int) int {
	if l.Get(n) == vm.LNil {
		return otherwise
	}
	return st.checkInt(l, n)
}

// optLen is an integer argument that is otherwise a table's length.
func (st *state) optLen(l *vm.LState, n int, t *vm.LTable) int {
	if l.Get(n) == vm.LNil {
		return t.Len()
	}
	return st.checkInt(l, n)
}

func (st *state) checkString(l *vm.LState, n int) string {
	switch x := l.Get(n).(type) {
	case vm.LString:
		return string(x)
	case vm.LNumber:
		return number.Format(float64(x))
	}
	st.raiseType(l, n, "string")
	return ""
}

func (st *state) optString(l *vm.LState, n int, otherwise string) string {
	if l.Get(n) == vm.LNil {
		return otherwise
	}
	return st.checkString(l, n)
}

// checkTable is a first argument that is a table.
func (st *state) checkTable(l *vm.LState) *vm.LTable {
	t, ok := l.Get(1).(*vm.LTable)
	if !ok {
		st.raiseType(l, 1, "table")
	}
	return t
}

// readable is a table as reads see it: behind _G are the globals.
func (st *state) readable(t *vm.LTable) *vm.LTable {
	if t == st.env {
		return st.globals
	}
	return t
}

// writable is a first argument that is a table which the function is about to change.
func (st *state) writable(l *vm.LState) *vm.LTable {
	t := st.checkTable(l)
	if st.isSealed(t) {
		st.throwText(l, readonlyText)
	}
	return t
}

// pushText pushes a string that was made, and charges for it.
func (st *state) pushText(l *vm.LState, b []byte) int {
	st.meter.Charge(len(b) + 16)
	l.Push(vm.LString(b))
	return 1
}

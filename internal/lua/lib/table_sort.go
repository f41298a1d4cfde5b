package lib

import (
	"sort"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/guard"
)

// A sorter sorts values by Lua's order or a function of the script.
type sorter struct {
	tableLibrary
	l      *lua.LState
	values []lua.LValue
	less   lua.LValue // nil for Lua's order
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	a, b := s.values[i], s.values[j]
	s.Meter.Spend(2)
	if s.less != nil {
		return lua.LVAsBool(s.Call1(s.l, s.less, a, b))
	}
	switch x := a.(type) {
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			s.Meter.Spend(min(len(x), len(y)) >> 6)
			return x < y
		}
	case *lua.LTable:
		if b.Type() == lua.LTTable && s.l.GetMetaField(x, "__lt") != lua.LNil {
			return s.l.LessThan(a, b)
		}
	}
	left, right := a.Type().String(), b.Type().String()
	if left == right {
		s.ThrowText(s.l, "attempt to compare two "+left+" values")
	}
	s.ThrowText(s.l, "attempt to compare "+left+" with "+right)
	return false
}

func (lib tableLibrary) sort(l *lua.LState) int {
	t := lib.CheckTable(l)
	s := &sorter{tableLibrary: lib, l: l}
	if f := l.Get(2); f != lua.LNil {
		if f.Type() != lua.LTFunction {
			lib.RaiseType(l, 2, "function")
		}
		s.less = f
	}
	n := t.Len()
	if n == 0 {
		return 0
	}
	t = lib.Writable(l)
	lib.Meter.Charge(n * guard.ArgumentBytes)
	s.values = make([]lua.LValue, n)
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

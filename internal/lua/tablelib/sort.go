package tablelib

import (
	"sort"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
)

// A sorter sorts values by Lua's order or a function of the script.
type sorter struct {
	library
	l      *vm.LState
	values []vm.LValue
	less   vm.LValue // nil for Lua's order
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	a, b := s.values[i], s.values[j]
	s.Meter.Spend(2)
	if s.less != nil {
		return vm.LVAsBool(s.Call1(s.l, s.less, a, b))
	}
	switch x := a.(type) {
	case vm.LNumber:
		if y, ok := b.(vm.LNumber); ok {
			return x < y
		}
	case vm.LString:
		if y, ok := b.(vm.LString); ok {
			s.Meter.Spend(min(len(x), len(y)) >> 6)
			return x < y
		}
	case *vm.LTable:
		if b.Type() == vm.LTTable && s.l.GetMetaField(x, "__lt") != vm.LNil {
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

func (lib library) sort(l *vm.LState) int {
	t := lib.CheckTable(l)
	s := &sorter{library: lib, l: l}
	if f := l.Get(2); f != vm.LNil {
		if f.Type() != vm.LTFunction {
			lib.RaiseType(l, 2, "function")
		}
		s.less = f
	}
	n := t.Len()
	if n == 0 {
		return 0
	}
	t = lib.Writable(l)
	lib.Meter.Charge(n * bound.ArgumentBytes)
	s.values = make([]vm.LValue, n)
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

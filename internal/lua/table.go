package lua

import (
	"iter"
	"sort"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

type tableLibrary struct{ *vm.Machine }

func openTable(m *vm.Machine) {
	lib := tableLibrary{m}
	m.OpenLibrary("table", vm.Functions{
		"concat":   lib.concat,
		"foreach":  lib.foreach,
		"foreachi": lib.foreachi,
		"getn":     func(l *lua.LState) int { return vm.Return(l, lua.LNumber(lib.CheckTable(l).Len())) },
		"insert":   lib.insert,
		"maxn":     lib.maxn,
		"remove":   lib.remove,
		"setn":     func(l *lua.LState) int { lib.Raise(l, "'setn' is obsolete"); return 0 },
		"sort":     lib.sort,
	})
}

func (lib tableLibrary) concat(l *lua.LState) int {
	t, separator := lib.CheckTable(l), lib.OptString(l, 2, "")
	from := lib.OptInt(l, 3, 1)
	to := lib.OptInt(l, 4, t.Len())
	var out []byte
	for i := from; i <= to; i++ {
		v := vm.Element(t, i)
		if !vm.IsText(v) {
			lib.Raise(l, "invalid value ("+v.Type().String()+") at index "+strconv.Itoa(i)+" in table for 'concat'")
		}
		if i > from {
			out = append(out, separator...)
		}
		lib.Meter.Spend(1)
		lib.Meter.Charge(2 * (vm.TextBytes(v) + len(separator)))
		out = vm.AppendText(out, v)
	}
	return lib.PushText(l, out)
}

func (lib tableLibrary) insert(l *lua.LState) int {
	t := lib.Writable(l)
	n := t.Len()
	at, v := n+1, l.Get(2)
	switch l.GetTop() {
	case 2:
	case 3:
		at, v = lib.CheckInt(l, 2), l.Get(3)
	default:
		lib.Raise(l, "wrong number of arguments to 'insert'")
	}
	if at < 1 || at > n || v == lua.LNil {
		lib.RawSet(l, t, lua.LNumber(at), v)
		return 0
	}
	lib.Meter.Charge(vm.ElementBytes)
	lib.Meter.Spend((n - at) >> 3)
	t.Insert(at, v)
	return 0
}

func (lib tableLibrary) remove(l *lua.LState) int {
	t := lib.CheckTable(l)
	n := t.Len()
	at := lib.OptInt(l, 2, n)
	if at < 1 || at > n {
		return 0
	}
	t = lib.Writable(l)
	lib.Meter.Spend((n - at) >> 3)
	return vm.Return(l, t.Remove(at))
}

func (lib tableLibrary) maxn(l *lua.LState) int {
	most := lua.LNumber(0)
	for k := range vm.Pairs(lib.Readable(lib.CheckTable(l))) {
		lib.Meter.Spend(2)
		if n, ok := k.(lua.LNumber); ok && n > most {
			most = n
		}
	}
	return vm.Return(l, most)
}

func (lib tableLibrary) foreach(l *lua.LState) int {
	return lib.each(l, vm.Pairs(lib.Readable(lib.CheckTable(l))))
}

func (lib tableLibrary) foreachi(l *lua.LState) int {
	t := lib.CheckTable(l)
	return lib.each(l, func(yield func(k, v lua.LValue) bool) {
		for i, n := 1, t.Len(); i <= n; i++ {
			if !yield(lua.LNumber(i), t.RawGetInt(i)) {
				return
			}
		}
	})
}

// each calls the script's function until it returns a value.
func (lib tableLibrary) each(l *lua.LState, fields iter.Seq2[lua.LValue, lua.LValue]) int {
	for k, v := range fields {
		if r := lib.Call1(l, l.Get(2), k, v); r != lua.LNil {
			return vm.Return(l, r)
		}
	}
	return 0
}

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
	lib.Meter.Charge(n * vm.ArgumentBytes)
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

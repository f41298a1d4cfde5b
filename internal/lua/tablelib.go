package lua

import (
	"sort"
	"strconv"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
)

func (st *state) openTable() {
	st.openLibrary("table", library{
		"concat":   st.tableConcat,
		"foreach":  st.tableForeach,
		"foreachi": st.tableForeachi,
		"getn":     func(l *vm.LState) int { l.Push(vm.LNumber(st.checkTable(l).Len())); return 1 },
		"insert":   st.tableInsert,
		"maxn":     st.tableMaxn,
		"remove":   st.tableRemove,
		"setn":     func(l *vm.LState) int { st.raise(l, "'setn' is obsolete"); return 0 },
		"sort":     st.tableSort,
	})
}

func (st *state) tableConcat(l *vm.LState) int {
	t, separator := st.checkTable(l), st.optString(l, 2, "")
	from := st.optInt(l, 3, 1)
	to := st.optLen(l, 4, t)
	var out []byte
	for i := from; i <= to; i++ {
		v := t.RawGetInt(i)
		if !isText(v) {
			st.raise(l, "invalid value ("+v.Type().String()+") at index "+strconv.Itoa(i)+" in table for 'concat'")
		}
		if i > from {
			out = append(out, separator...)
		}
		st.meter.Spend(1)
		st.meter.Charge(2 * (textBytes(v) + len(separator)))
		out = appendText(out, v)
	}
	return st.pushText(l, out)
}

func (st *state) tableInsert(l *vm.LState) int {
	t := st.writable(l)
	n := t.Len()
	at, v := n+1, l.Get(2)
	switch l.GetTop() {
	case 2:
	case 3:
		at, v = st.checkInt(l, 2), l.Get(3)
	default:
		st.raise(l, "wrong number of arguments to 'insert'")
	}
	if at < 1 || at > n || v == vm.LNil {
		st.rawSet(l, t, vm.LNumber(at), v)
		return 0
	}
	st.meter.Charge(bound.ElementBytes)
	st.meter.Spend((n - at) >> 3)
	t.Insert(at, v)
	return 0
}

func (st *state) tableRemove(l *vm.LState) int {
	t := st.checkTable(l)
	n := t.Len()
	at := st.optInt(l, 2, n)
	if at < 1 || at > n {
		return 0
	}
	t = st.writable(l)
	st.meter.Spend((n - at) >> 3)
	l.Push(t.Remove(at))
	return 1
}

func (st *state) tableMaxn(l *vm.LState) int {
	most := vm.LNumber(0)
	st.each(st.readable(st.checkTable(l)), func(k, _ vm.LValue) {
		st.meter.Spend(2)
		if n, ok := k.(vm.LNumber); ok && n > most {
			most = n
		}
	})
	l.Push(most)
	return 1
}

func (st *state) tableForeach(l *vm.LState) int {
	t, f := st.readable(st.checkTable(l)), l.Get(2)
	for k, v := t.Next(vm.LNil); k != vm.LNil; k, v = t.Next(k) {
		if r := st.call1(l, f, k, v); r != vm.LNil {
			l.Push(r)
			return 1
		}
	}
	return 0
}

func (st *state) tableForeachi(l *vm.LState) int {
	t, f := st.checkTable(l), l.Get(2)
	for i, n := 1, t.Len(); i <= n; i++ {
		if r := st.call1(l, f, vm.LNumber(i), t.RawGetInt(i)); r != vm.LNil {
			l.Push(r)
			return 1
		}
	}
	return 0
}

// A sorter sorts values by Lua's order or a function of the script.
type sorter struct {
	st     *state
	l      *vm.LState
	values []vm.LValue
	less   vm.LValue // nil for Lua's order
}

func (s *sorter) Len() int      { return len(s.values) }
func (s *sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

func (s *sorter) Less(i, j int) bool {
	a, b := s.values[i], s.values[j]
	s.st.meter.Spend(2)
	if s.less != nil {
		return vm.LVAsBool(s.st.call1(s.l, s.less, a, b))
	}
	switch x := a.(type) {
	case vm.LNumber:
		if y, ok := b.(vm.LNumber); ok {
			return x < y
		}
	case vm.LString:
		if y, ok := b.(vm.LString); ok {
			s.st.meter.Spend(min(len(x), len(y)) >> 6)
			return x < y
		}
	case *vm.LTable:
		if b.Type() == vm.LTTable && s.l.GetMetaField(x, "__lt") != vm.LNil {
			return s.l.LessThan(a, b)
		}
	}
	left, right := a.Type().String(), b.Type().String()
	if left == right {
		s.st.throwText(s.l, "attempt to compare two "+left+" values")
	}
	s.st.throwText(s.l, "attempt to compare "+left+" with "+right)
	return false
}

func (st *state) tableSort(l *vm.LState) int {
	t := st.checkTable(l)
	s := &sorter{st: st, l: l}
	if f := l.Get(2); f != vm.LNil {
		if f.Type() != vm.LTFunction {
			st.raiseType(l, 2, "function")
		}
		s.less = f
	}
	n := t.Len()
	if n == 0 {
		return 0
	}
	t = st.writable(l)
	st.meter.Charge(n * bound.ArgumentBytes)
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

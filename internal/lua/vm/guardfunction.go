package vm

import (
	lua "github.com/yuin/gopher-lua"
)

// maxIndirections bounds the __newindex chain of a store.
const maxIndirections = 100

// NewGuards returns the guards' functions.
func NewGuards(m *Machine) (functions [GuardCount]lua.LValue) {
	for guard, f := range map[Guard]lua.LGFunction{
		concatGuard:    m.concat,
		setIndexGuard:  m.setIndex,
		newTableGuard:  m.newTable,
		fillTableGuard: m.fillTable,
		closureGuard:   m.closure,
		varargGuard:    m.vararg,
		loopBoundGuard: m.loopBound,
		nothingGuard:   func(*lua.LState) int { return 0 },
	} {
		functions[guard] = m.L.NewFunction(f)
	}
	return functions
}

func (m *Machine) newTable(l *lua.LState) int {
	m.Meter.Charge(TableBytes)
	return Return(l, l.CreateTable(4, 1))
}

// fillTable charges for a constructor's table and sets the fields among its arguments.
func (m *Machine) fillTable(l *lua.LState) int {
	integer := func(i int) int { return int(l.Get(i).(lua.LNumber)) }
	fields, pairs, next := integer(1), integer(3), integer(4)
	t := l.Get(2).(*lua.LTable)
	m.Meter.Charge(TableBytes + fields*FieldBytes + t.MaxN()*ElementBytes)
	const first = 5
	for i := first; i < first+pairs; i += 2 {
		m.RawSet(l, t, l.Get(i), l.Get(i+1))
	}
	for i := first + pairs; i <= l.GetTop(); i++ {
		m.RawSet(l, t, lua.LNumber(next), l.Get(i))
		next++
	}
	return Return(l, t)
}

func (m *Machine) closure(l *lua.LState) int {
	m.Meter.Charge(ClosureBytes)
	return l.GetTop()
}

func (m *Machine) loopBound(l *lua.LState) int {
	if f, ok := m.ToNumber(l.Get(1)); ok {
		l.Push(lua.LNumber(f))
	}
	return 1
}

// vararg charges for a function's variable arguments.
func (m *Machine) vararg(l *lua.LState) int {
	n := l.GetTop()
	m.Meter.Charge(n * 4 * ArgumentBytes)
	return n
}

// setIndex is object[key] = value, with metamethods.
func (m *Machine) setIndex(l *lua.LState) int {
	object, key, value := l.Get(1), l.Get(2), l.Get(3)
	for range maxIndirections {
		t, isTable := object.(*lua.LTable)
		if isTable {
			if m.IsSealed(t) {
				m.raiseReadOnly(l)
			}
			if t.Metatable == lua.LNil || t.RawGet(key) != lua.LNil {
				m.RawSet(l, t, key, value)
				return 0
			}
		}
		next := l.GetMetaField(object, "__newindex")
		switch {
		case next.Type() == lua.LTFunction:
			m.call(l, next, 0, object, key, value)
			return 0
		case next != lua.LNil:
			object = next
		case isTable:
			m.RawSet(l, t, key, value)
			return 0
		default:
			m.Raise(l, "attempt to index a "+object.Type().String()+" value")
		}
	}
	m.Raise(l, "loop in settable")
	return 0
}

// concat is a .. b .. ..., right-associative.
func (m *Machine) concat(l *lua.LState) int {
	n := l.GetTop()
	right := l.Get(n)
	for i := n - 1; i >= 1; {
		left := l.Get(i)
		if IsText(left) && IsText(right) {
			from := i
			for from > 1 && IsText(l.Get(from-1)) {
				from--
			}
			right = m.join(l, from, i, right)
			i = from - 1
			continue
		}
		f := l.GetMetaField(left, "__concat")
		if f == lua.LNil {
			f = l.GetMetaField(right, "__concat")
		}
		if f == lua.LNil {
			culprit := left
			if IsText(left) {
				culprit = right
			}
			m.Raise(l, "attempt to concatenate a "+culprit.Type().String()+" value")
		}
		right = m.Call1(l, f, left, right)
		i--
	}
	return Return(l, right)
}

// join joins the arguments from to last, and right.
func (m *Machine) join(l *lua.LState, from, last int, right lua.LValue) lua.LValue {
	var piece [128]byte
	b := piece[:0]
	size := TextBytes(right)
	for i := from; i <= last; i++ {
		size += TextBytes(l.Get(i))
	}
	m.Meter.Charge(size)
	if size > len(piece) {
		b = make([]byte, 0, size)
	}
	for i := from; i <= last; i++ {
		b = AppendText(b, l.Get(i))
	}
	return lua.LString(AppendText(b, right))
}

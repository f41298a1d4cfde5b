package vm

import (
	"iter"
	"math"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// maxArrayIndex bounds the arrays of tables, which gopher-lua fills with nils; higher indexes are hashed. No
// run of 16 MiB has a longer array without gaps.
const maxArrayIndex = 1 << 19

// MaxElements is the largest number of elements in a table's array.
const MaxElements = maxArrayIndex - 1

// boundArrays sets gopher-lua's bound, which is global.
var boundArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = maxArrayIndex }) //nolint:gochecknoglobals // as what it sets is

// seal protects a table from scripts.
func (m *Machine) seal(t *lua.LTable) { t.Metatable = m.sealed }

// IsSealed reports whether scripts must not change a table.
func (m *Machine) IsSealed(t *lua.LTable) bool { return t == m.env || t.Metatable == m.sealed }

// Readable returns the table for reads: the globals for _G.
func (m *Machine) Readable(t *lua.LTable) *lua.LTable {
	if t == m.env {
		return m.globals
	}
	return t
}

// Metatable returns a value's metatable for scripts.
func (m *Machine) Metatable(l *lua.LState, v lua.LValue) lua.LValue {
	mt := l.GetMetatable(v)
	switch {
	case v == m.env:
		return m.sealed
	case mt == m.sealed:
		return lua.LNil
	}
	return mt
}

// SetMetatable sets a metatable; _G's counts as none, as it would seal the table.
func (m *Machine) SetMetatable(t *lua.LTable, mt lua.LValue) {
	if mt == m.sealed {
		mt = lua.LNil
	}
	t.Metatable = mt
}

// RawSet stores into a table and charges for growth.
func (m *Machine) RawSet(l *lua.LState, t *lua.LTable, key, value lua.LValue) {
	if n, ok := key.(lua.LNumber); ok && math.IsNaN(float64(n)) {
		m.Raise(l, "table index is NaN")
	} else if key == lua.LNil {
		m.Raise(l, "table index is nil")
	} else if ok && n == lua.LNumber(int(n)) && n > 0 && n < maxArrayIndex {
		m.setElement(t, int(n), value)
		return
	}
	if t.RawGet(key) == lua.LNil {
		if value == lua.LNil {
			return
		}
		m.Meter.Charge(FieldBytes)
	} else if value == lua.LNil {
		m.Meter.AddHoles(1)
	}
	t.RawSet(key, value)
}

// setElement stores into a table's array, which gopher-lua fills with nils up to the index.
func (m *Machine) setElement(t *lua.LTable, i int, value lua.LValue) {
	if t.RawGetInt(i) != lua.LNil {
		if value == lua.LNil {
			m.Meter.AddHoles(1)
		}
	} else if value == lua.LNil {
		return
	} else if n := t.MaxN(); i > n {
		m.Meter.Charge((i - n) * ElementBytes)
		m.Meter.AddHoles(i - n - 1)
		m.fill(t, n, i)
	}
	t.RawSetInt(i, value)
}

// fill extends an array with nils from n to i, in pieces.
func (m *Machine) fill(t *lua.LTable, n, i int) {
	const piece, bytesPerUnit = 1 << 10, 4
	for n += piece; n < i; n += piece {
		m.Meter.Spend(piece / bytesPerUnit)
		t.RawSetInt(n, lua.LNil)
	}
}

// Element returns a table's i-th element from either part.
func Element(t *lua.LTable, i int) lua.LValue {
	if i < maxArrayIndex {
		return t.RawGetInt(i)
	}
	return t.RawGet(lua.LNumber(i))
}

// NewTagged returns a table with one field for its type, like Redis's replies.
func (m *Machine) NewTagged(tag string, v lua.LValue) *lua.LTable {
	m.Meter.Charge(TableBytes)
	t := m.L.CreateTable(0, 1)
	t.RawSetString(tag, v)
	return t
}

// Pairs iterates over a table in its order, without metamethods.
func Pairs(t *lua.LTable) iter.Seq2[lua.LValue, lua.LValue] {
	return func(yield func(k, v lua.LValue) bool) {
		for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
			if !yield(k, v) {
				return
			}
		}
	}
}

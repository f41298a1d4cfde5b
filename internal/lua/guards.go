package lua

import (
	"math"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/number"
	"cellserver/internal/lua/rewrite"
)

func (st *state) openGuards() {
	for g, f := range map[rewrite.Guard]vm.LGFunction{
		rewrite.GuardConcat:  st.concat,
		rewrite.GuardSet:     st.setIndex,
		rewrite.GuardNew:     st.newTable,
		rewrite.GuardTable:   st.fillTable,
		rewrite.GuardClosure: st.closure,
		rewrite.GuardVararg:  st.vararg,
		rewrite.GuardNumber:  st.loopBound,
		rewrite.GuardNone:    func(*vm.LState) int { return 0 },
	} {
		st.guard[g] = st.l.NewFunction(f)
	}
}

func (st *state) newTable(l *vm.LState) int {
	st.meter.Charge(bound.TableBytes)
	l.Push(l.CreateTable(4, 1))
	return 1
}

// fillTable charges for a constructor's table, and sets those of its fields that are arguments.
func (st *state) fillTable(l *vm.LState) int {
	integer := func(i int) int { return int(l.Get(i).(vm.LNumber)) }
	fields, pairs, next := integer(1), integer(3), integer(4)
	t := l.Get(2).(*vm.LTable)
	st.meter.Charge(bound.TableBytes + fields*bound.FieldBytes + t.MaxN()*bound.ElementBytes)
	const first = 5
	for i := first; i < first+pairs; i += 2 {
		st.rawSet(l, t, l.Get(i), l.Get(i+1))
	}
	for i := first + pairs; i <= l.GetTop(); i++ {
		st.rawSet(l, t, vm.LNumber(next), l.Get(i))
		next++
	}
	l.Push(t)
	return 1
}

func (st *state) closure(l *vm.LState) int {
	st.meter.Charge(bound.ClosureBytes)
	return l.GetTop()
}

func (st *state) loopBound(l *vm.LState) int {
	if f, ok := st.toNumber(l.Get(1)); ok {
		l.Push(vm.LNumber(f))
	}
	return 1
}

// vararg charges for arguments that a function of a variable number of them holds.
func (st *state) vararg(l *vm.LState) int {
	n := l.GetTop()
	st.meter.Charge(n * 4 * bound.ArgumentBytes)
	return n
}

// setIndex is object[key] = value, with metamethods.
func (st *state) setIndex(l *vm.LState) int {
	object, key, value := l.Get(1), l.Get(2), l.Get(3)
	for range maxIndirections {
		t, isTable := object.(*vm.LTable)
		if isTable {
			if st.isSealed(t) {
				st.raise(l, readonlyText)
			}
			if t.Metatable == vm.LNil || t.RawGet(key) != vm.LNil {
				st.rawSet(l, t, key, value)
				return 0
			}
		}
		next := l.GetMetaField(object, "__newindex")
		switch {
		case next.Type() == vm.LTFunction:
			st.call(l, next, 0, object, key, value)
			return 0
		case next != vm.LNil:
			object = next
		case isTable:
			st.rawSet(l, t, key, value)
			return 0
		default:
			st.raise(l, "attempt to index a "+object.Type().String()+" value")
		}
	}
	st.raise(l, "loop in settable")
	return 0
}

// rawSet stores into a table and charges for its growth.
func (st *state) rawSet(l *vm.LState, t *vm.LTable, key, value vm.LValue) {
	if n, ok := key.(vm.LNumber); ok && math.IsNaN(float64(n)) {
		st.raise(l, "table index is NaN")
	} else if key == vm.LNil {
		st.raise(l, "table index is nil")
	} else if ok && n == vm.LNumber(int(n)) && n > 0 && n < maxArrayIndex {
		st.setElement(t, int(n), value)
		return
	}
	if t.RawGet(key) == vm.LNil {
		if value == vm.LNil {
			return
		}
		st.meter.Charge(bound.FieldBytes)
	} else if value == vm.LNil {
		st.meter.AddHoles(1)
	}
	t.RawSet(key, value)
}

// setElement stores into a table's array, which gopher-lua fills with nils up to the index.
func (st *state) setElement(t *vm.LTable, i int, value vm.LValue) {
	if t.RawGetInt(i) != vm.LNil {
		if value == vm.LNil {
			st.meter.AddHoles(1)
		}
	} else if value == vm.LNil {
		return
	} else if n := t.MaxN(); i > n {
		st.meter.Charge((i - n) * bound.ElementBytes)
		st.meter.AddHoles(i - n - 1)
	}
	t.RawSetInt(i, value)
}

// call calls a Lua value from a native function; the results are on the stack.
func (st *state) call(l *vm.LState, f vm.LValue, results int, args ...vm.LValue) {
	l.Push(f)
	for _, a := range args {
		l.Push(a)
	}
	l.Call(len(args), results)
}

// call1 calls a Lua value from a native function and returns its one result.
func (st *state) call1(l *vm.LState, f vm.LValue, args ...vm.LValue) vm.LValue {
	st.call(l, f, 1, args...)
	v := l.Get(-1)
	l.Pop(1)
	return v
}

// concat is a .. b .. ..., which binds to the right.
func (st *state) concat(l *vm.LState) int {
	n := l.GetTop()
	right := l.Get(n)
	for i := n - 1; i >= 1; {
		left := l.Get(i)
		if isText(left) && isText(right) {
			from := i
			for from > 1 && isText(l.Get(from-1)) {
				from--
			}
			right = st.join(l, from, i, right)
			i = from - 1
			continue
		}
		f := l.GetMetaField(left, "__concat")
		if f == vm.LNil {
			f = l.GetMetaField(right, "__concat")
		}
		if f == vm.LNil {
			culprit := left
			if isText(left) {
				culprit = right
			}
			st.raise(l, "attempt to concatenate a "+culprit.Type().String()+" value")
		}
		right = st.call1(l, f, left, right)
		i--
	}
	l.Push(right)
	return 1
}

func isText(v vm.LValue) bool {
	switch v.(type) {
	case vm.LString, vm.LNumber:
		return true
	}
	return false
}

// join joins the arguments from to last, and one more value.
func (st *state) join(l *vm.LState, from, last int, right vm.LValue) vm.LValue {
	var piece [128]byte
	b := piece[:0]
	size := textBytes(right)
	for i := from; i <= last; i++ {
		size += textBytes(l.Get(i))
	}
	st.meter.Charge(size)
	if size > len(piece) {
		b = make([]byte, 0, size)
	}
	for i := from; i <= last; i++ {
		b = appendText(b, l.Get(i))
	}
	return vm.LString(appendText(b, right))
}

// textBytes is how long a string or number is at most.
func textBytes(v vm.LValue) int {
	if s, ok := v.(vm.LString); ok {
		return len(s)
	}
	return 24
}

func appendText(b []byte, v vm.LValue) []byte {
	switch x := v.(type) {
	case vm.LString:
		return append(b, x...)
	case vm.LNumber:
		return number.Append(b, float64(x))
	}
	return b
}

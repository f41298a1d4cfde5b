package lua

import (
	"math"

	vm "github.com/yuin/gopher-lua"
)

// openArithmetic gives strings Lua's arithmetic, for gopher-lua reads "010" as eight and "1_0" as ten, and the simple
// types messages that say what they are.
func (st *state) openArithmetic(stringMeta *vm.LTable) {
	for event, f := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": modulo,
		"__pow": math.Pow,
		"__unm": func(a, _ float64) float64 { return -a },
	} {
		stringMeta.RawSetString(event, st.l.NewFunction(func(l *vm.LState) int {
			return st.arithmetic(l, event, f)
		}))
	}
	for _, v := range []vm.LValue{vm.LNil, vm.LFalse, vm.LNumber(0), vm.LString(""), st.l.NewFunction(nil)} {
		meta := stringMeta
		if v.Type() != vm.LTString {
			meta = st.l.CreateTable(0, 3)
			st.l.SetMetatable(v, meta)
			st.complain(meta, "__len", "attempt to get length of a ")
		}
		st.complain(meta, "__call", "attempt to call a ")
		if v.Type() != vm.LTNumber && v.Type() != vm.LTString {
			st.complain(meta, "__unm", "attempt to perform arithmetic on a ")
		}
	}
}

func (st *state) complain(meta *vm.LTable, event, problem string) {
	meta.RawSetString(event, st.l.NewFunction(func(l *vm.LState) int {
		st.raise(l, problem+l.Get(1).Type().String()+" value")
		return 0
	}))
}

// arithmetic is an operation of which one operand is a string: the other one may be a table that knows better.
func (st *state) arithmetic(l *vm.LState, event string, f func(a, b float64) float64) int {
	left, right := l.Get(1), l.Get(2)
	if event == "__unm" {
		right = left
	}
	a, leftOK := st.toNumber(left)
	b, rightOK := st.toNumber(right)
	if leftOK && rightOK {
		l.Push(vm.LNumber(f(a, b)))
		return 1
	}
	for _, v := range []vm.LValue{left, right} {
		if t, ok := v.(*vm.LTable); ok {
			if other := l.GetMetaField(t, event); other != vm.LNil {
				l.Push(st.call1(l, other, left, right))
				return 1
			}
		}
	}
	culprit := left
	if leftOK {
		culprit = right
	}
	st.raise(l, "attempt to perform arithmetic on a "+culprit.Type().String()+" value")
	return 0
}

func modulo(a, b float64) float64 { return a - math.Floor(a/b)*b }

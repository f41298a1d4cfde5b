package lua

import (
	"fmt"
	"strings"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/message"
	"cellserver/internal/lua/number"
)

func (st *state) openBase() {
	st.register(st.globals, library{
		"assert":         st.baseAssert,
		"collectgarbage": st.baseCollect,
		"error":          st.baseError,
		"getmetatable":   st.baseGetMetatable,
		"ipairs":         st.baseIpairs(),
		"next":           st.baseNext,
		"pairs":          st.basePairs(),
		"pcall":          st.basePCall(),
		"rawequal":       st.baseRawEqual,
		"rawget":         st.baseRawGet,
		"rawset":         st.baseRawSet,
		"select":         st.baseSelect,
		"setmetatable":   st.baseSetMetatable,
		"tonumber":       st.baseToNumber,
		"tostring":       st.baseToString,
		"type":           st.baseType,
		"unpack":         st.baseUnpack,
		"xpcall":         st.baseXPCall(),
	})
	refuse := func(l *vm.LState) int {
		st.raise(l, "coroutines are not supported by this server")
		return 0
	}
	st.openLibrary("coroutine", library{
		"create": refuse, "resume": refuse, "running": refuse, "status": refuse, "wrap": refuse, "yield": refuse,
	})
	st.openLibrary("os", library{"clock": func(l *vm.LState) int {
		l.Push(vm.LNumber(st.meter.Elapsed().Seconds()))
		return 1
	}})
}

func (st *state) baseAssert(l *vm.LState) int {
	if vm.LVIsFalse(st.checkAny(l, 1)) {
		st.raise(l, st.optString(l, 2, "assertion failed!"))
	}
	return l.GetTop()
}

func (st *state) baseCollect(l *vm.LState) int {
	n := 0.0
	if st.optString(l, 1, "collect") == "count" {
		n = float64(st.meter.UsedBytes()) / 1024
	}
	l.Push(vm.LNumber(n))
	return 1
}

func (st *state) baseError(l *vm.LState) int {
	v, level := l.Get(1), st.optInt(l, 2, 1)
	if isText(v) && level > 0 && level <= maxCalls {
		text := message.Position(l, level) + string(appendText(nil, v))
		st.meter.Charge(len(text))
		v = vm.LString(text)
	}
	st.throw(l, v)
	return 0
}

func (st *state) baseGetMetatable(l *vm.LState) int {
	v := st.checkAny(l, 1)
	mt := l.GetMetatable(v)
	switch {
	case v == st.env:
		mt = st.sealed
	case mt == st.sealed:
		mt = vm.LNil
	}
	l.Push(mt)
	return 1
}

func (st *state) baseSetMetatable(l *vm.LState) int {
	t := st.checkTable(l)
	mt := l.Get(2)
	if mt.Type() != vm.LTNil && mt.Type() != vm.LTTable || l.GetTop() < 2 {
		st.raiseArgument(l, 2, "nil or table expected")
	}
	if st.isSealed(t) {
		st.throwText(l, readonlyText)
	}
	if l.GetMetaField(t, "__metatable") != vm.LNil {
		st.raise(l, "cannot change a protected metatable")
	}
	if mt == st.sealed {
		mt = vm.LNil // the metatable of _G: its tables would be taken for the library's
	}
	t.Metatable = mt
	l.Push(t)
	return 1
}

func (st *state) baseIpairs() vm.LGFunction {
	step := st.l.NewFunction(func(l *vm.LState) int {
		st.meter.Spend(2)
		t, i := st.checkTable(l), st.checkInt(l, 2)+1
		v := t.RawGetInt(i)
		if v == vm.LNil {
			return 0
		}
		l.Push(vm.LNumber(i))
		l.Push(v)
		return 2
	})
	return func(l *vm.LState) int {
		t := st.checkTable(l)
		l.Push(step)
		l.Push(t)
		l.Push(vm.LNumber(0))
		return 3
	}
}

func (st *state) basePairs() vm.LGFunction {
	next := st.l.NewFunction(st.baseNext)
	return func(l *vm.LState) int {
		t := st.checkTable(l)
		l.Push(next)
		l.Push(t)
		l.Push(vm.LNil)
		return 3
	}
}

// baseNext may have to step over all that was removed from the table.
func (st *state) baseNext(l *vm.LState) int {
	st.meter.Spend(2 + st.meter.Holes()>>2)
	k, v := st.readable(st.checkTable(l)).Next(l.Get(2))
	l.Push(k)
	if k == vm.LNil {
		return 1
	}
	l.Push(v)
	return 2
}

// protected calls the first argument with the n that follow, as pcall does. The inner function is there because
// gopher-lua's protected call replaces our handler of errors.
func (st *state) protected() func(l *vm.LState, n int) (vm.LValue, bool) {
	inner := st.l.NewFunction(func(l *vm.LState) int {
		l.Panic = st.onError
		l.Call(l.GetTop()-1, vm.MultRet)
		return l.GetTop()
	})
	return func(l *vm.LState, n int) (vm.LValue, bool) {
		l.Insert(inner, l.GetTop()-n)
		err := l.PCall(n+1, vm.MultRet, nil)
		st.meter.Resume()
		if err == nil {
			return nil, true
		}
		api, ok := err.(*vm.ApiError) //nolint:errorlint // gopher-lua returns it as it is
		if !ok || api.Type == vm.ApiErrorPanic {
			panic(err)
		}
		v := api.Object
		if t, ok := v.(*vm.LTable); ok {
			if text, ok := t.RawGetString("err").(vm.LString); ok {
				v = text
			}
		}
		st.meter.Charge(textBytes(v))
		return v, false
	}
}

func (st *state) basePCall() vm.LGFunction {
	protected := st.protected()
	return func(l *vm.LState) int {
		st.checkAny(l, 1)
		st.meter.Charge(l.GetTop() * bound.ArgumentBytes)
		if problem, ok := protected(l, l.GetTop()-1); !ok {
			l.Push(vm.LFalse)
			l.Push(problem)
			return 2
		}
		l.Insert(vm.LTrue, 1)
		return l.GetTop()
	}
}

// baseXPCall calls its handler after the stack is unwound: there is no debug library that could tell the difference.
func (st *state) baseXPCall() vm.LGFunction {
	protected := st.protected()
	return func(l *vm.LState) int {
		st.checkAny(l, 2)
		handler := l.Get(2)
		l.SetTop(1)
		if problem, ok := protected(l, 0); !ok {
			result := st.call1(l, handler, problem)
			l.Push(vm.LFalse)
			l.Push(result)
			return 2
		}
		l.Insert(vm.LTrue, 1)
		return l.GetTop()
	}
}

func (st *state) baseRawEqual(l *vm.LState) int {
	l.Push(vm.LBool(st.checkAny(l, 1) == st.checkAny(l, 2)))
	return 1
}

func (st *state) baseRawGet(l *vm.LState) int {
	l.Push(st.readable(st.checkTable(l)).RawGet(st.checkAny(l, 2)))
	return 1
}

func (st *state) baseRawSet(l *vm.LState) int {
	t := st.writable(l)
	st.rawSet(l, t, st.checkAny(l, 2), st.checkAny(l, 3))
	l.Push(t)
	return 1
}

func (st *state) baseSelect(l *vm.LState) int {
	top := l.GetTop()
	if s, ok := l.Get(1).(vm.LString); ok && strings.HasPrefix(string(s), "#") {
		l.Push(vm.LNumber(top - 1))
		return 1
	}
	n := st.checkInt(l, 1)
	if n < 0 {
		n = top + n
	} else if n > top {
		n = top
	}
	if n < 1 {
		st.raiseArgument(l, 1, "index out of range")
	}
	st.meter.Charge((top - n) * bound.ArgumentBytes)
	return top - n
}

func (st *state) baseToNumber(l *vm.LState) int {
	base := st.optInt(l, 2, 10)
	v := st.checkAny(l, 1)
	if base == 10 {
		if f, ok := st.toNumber(v); ok {
			l.Push(vm.LNumber(f))
			return 1
		}
		l.Push(vm.LNil)
		return 1
	}
	text := st.checkString(l, 1)
	if base < 2 || base > 36 {
		st.raiseArgument(l, 2, "base out of range")
	}
	st.meter.Spend(len(text) >> 4)
	if f, ok := number.ParseBase(text, base); ok {
		l.Push(vm.LNumber(f))
	} else {
		l.Push(vm.LNil)
	}
	return 1
}

func (st *state) baseToString(l *vm.LState) int {
	l.Push(st.text(l, st.checkAny(l, 1)))
	return 1
}

// text is a value as tostring shows it.
func (st *state) text(l *vm.LState, v vm.LValue) vm.LValue {
	if f := l.GetMetaField(v, "__tostring"); f != vm.LNil {
		return st.call1(l, f, v)
	}
	switch x := v.(type) {
	case vm.LString:
		return x
	case vm.LNumber:
		st.meter.Charge(textBytes(x))
		return vm.LString(number.Format(float64(x)))
	case *vm.LFunction:
		v = vm.LString(fmt.Sprintf("function: %p", x))
	case *vm.LUserData:
		v = vm.LString("userdata: (nil)")
	}
	st.meter.Charge(textBytes(vm.LNumber(0)))
	return vm.LString(v.String())
}

func (st *state) baseType(l *vm.LState) int {
	l.Push(vm.LString(st.checkAny(l, 1).Type().String()))
	return 1
}

func (st *state) baseUnpack(l *vm.LState) int {
	t := st.checkTable(l)
	from := st.optInt(l, 2, 1)
	to := st.optLen(l, 3, t)
	n := to - from + 1
	if n <= 0 {
		return 0
	}
	if n > bound.MaxResults {
		st.raise(l, "too many results to unpack")
	}
	st.meter.Charge(n * 2 * bound.ArgumentBytes)
	for i := from; i <= to; i++ {
		l.Push(t.RawGetInt(i))
	}
	return n
}

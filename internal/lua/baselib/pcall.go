package baselib

import (
	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/machine"
)

// protected calls the first argument with the n that follow. It returns what was raised, and whether nothing was.
func (lib library) protected() func(l *vm.LState, n int) (vm.LValue, bool) {
	inner := lib.NewProtected(func(l *vm.LState) int {
		l.Call(l.GetTop()-1, vm.MultRet)
		return l.GetTop()
	})
	return func(l *vm.LState, n int) (vm.LValue, bool) {
		l.Insert(inner, l.GetTop()-n)
		err := l.PCall(n+1, vm.MultRet, nil)
		lib.Meter.Rethrow()
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
		lib.Meter.Charge(machine.TextBytes(v))
		return v, false
	}
}

func (lib library) pcall() vm.LGFunction {
	protected := lib.protected()
	return func(l *vm.LState) int {
		lib.CheckAny(l, 1)
		lib.Meter.Charge(l.GetTop() * bound.ArgumentBytes)
		if problem, ok := protected(l, l.GetTop()-1); !ok {
			l.Push(vm.LFalse)
			l.Push(problem)
			return 2
		}
		l.Insert(vm.LTrue, 1)
		return l.GetTop()
	}
}

// xpcall calls its handler after the stack is unwound: there is no debug library that could tell the difference.
func (lib library) xpcall() vm.LGFunction {
	protected := lib.protected()
	return func(l *vm.LState) int {
		lib.CheckAny(l, 2)
		handler := l.Get(2)
		l.SetTop(1)
		if problem, ok := protected(l, 0); !ok {
			result := lib.Call1(l, handler, problem)
			l.Push(vm.LFalse)
			l.Push(result)
			return 2
		}
		l.Insert(vm.LTrue, 1)
		return l.GetTop()
	}
}

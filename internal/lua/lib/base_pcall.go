package lib

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/guard"
	"cellserver/internal/lua/vm"
)

// protected calls the first argument with the next n. It returns the error, and whether there was none.
func (lib baseLibrary) protected() func(l *lua.LState, n int) (lua.LValue, bool) {
	inner := lib.NewProtected(func(l *lua.LState) int {
		l.Call(l.GetTop()-1, lua.MultRet)
		return l.GetTop()
	})
	return func(l *lua.LState, n int) (lua.LValue, bool) {
		l.Insert(inner, l.GetTop()-n)
		err := l.PCall(n+1, lua.MultRet, nil)
		lib.Meter.Rethrow()
		if err == nil {
			return nil, true
		}
		api, ok := err.(*lua.ApiError) //nolint:errorlint // gopher-lua returns it as it is
		if !ok || api.Type == lua.ApiErrorPanic {
			panic(err)
		}
		v := api.Object
		if t, ok := v.(*lua.LTable); ok {
			if text, ok := t.RawGetString("err").(lua.LString); ok {
				v = text
			}
		}
		lib.Meter.Charge(vm.TextBytes(v))
		return v, false
	}
}

func (lib baseLibrary) pcall() lua.LGFunction {
	protected := lib.protected()
	return func(l *lua.LState) int {
		lib.CheckAny(l, 1)
		lib.Meter.Charge(l.GetTop() * guard.ArgumentBytes)
		if problem, ok := protected(l, l.GetTop()-1); !ok {
			l.Push(lua.LFalse)
			l.Push(problem)
			return 2
		}
		l.Insert(lua.LTrue, 1)
		return l.GetTop()
	}
}

// xpcall calls its handler after unwinding; without a debug library nobody sees the difference.
func (lib baseLibrary) xpcall() lua.LGFunction {
	protected := lib.protected()
	return func(l *lua.LState) int {
		lib.CheckAny(l, 2)
		handler := l.Get(2)
		l.SetTop(1)
		if problem, ok := protected(l, 0); !ok {
			result := lib.Call1(l, handler, problem)
			l.Push(lua.LFalse)
			l.Push(result)
			return 2
		}
		l.Insert(lua.LTrue, 1)
		return l.GetTop()
	}
}

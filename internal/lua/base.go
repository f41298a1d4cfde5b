package lua

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// baseLibrary is Lua's basic functions and the permitted ones of os and coroutine.
type baseLibrary struct {
	*vm.Machine
	nextIndex, nextKey *lua.LFunction // of ipairs and pairs
	caller             *lua.LFunction // calls its first argument for pcall
}

func openBase(m *vm.Machine) {
	lib := baseLibrary{Machine: m}
	lib.nextIndex, lib.nextKey = m.L.NewFunction(lib.following), m.L.NewFunction(lib.next)
	lib.caller = m.NewProtected(func(l *lua.LState) int {
		l.Call(l.GetTop()-1, lua.MultRet)
		return l.GetTop()
	})
	m.OpenGlobals(vm.Functions{
		"assert":         lib.assert,
		"collectgarbage": lib.collectgarbage,
		"error":          lib.raiseValue,
		"gcinfo":         lib.gcinfo,
		"getmetatable":   lib.getmetatable,
		"ipairs":         lib.ipairs,
		"next":           lib.next,
		"pairs":          lib.pairs,
		"pcall":          lib.pcall,
		"rawequal":       lib.rawequal,
		"rawget":         lib.rawget,
		"rawset":         lib.rawset,
		"select":         lib.selectFrom,
		"setmetatable":   lib.setmetatable,
		"tonumber":       lib.tonumber,
		"tostring":       lib.tostring,
		"type":           lib.typeName,
		"unpack":         lib.unpack,
		"xpcall":         lib.xpcall,
	})
	refuse := func(l *lua.LState) int {
		lib.Raise(l, "coroutines are not supported by this server")
		return 0
	}
	lib.OpenLibrary("coroutine", vm.Functions{
		"create": refuse, "resume": refuse, "running": refuse, "status": refuse, "wrap": refuse, "yield": refuse,
	})
	lib.OpenLibrary("os", vm.Functions{"clock": func(l *lua.LState) int {
		return vm.Return(l, lua.LNumber(lib.Meter.Elapsed().Seconds()))
	}})
}

func (lib baseLibrary) assert(l *lua.LState) int {
	if lua.LVIsFalse(lib.CheckAny(l, 1)) {
		lib.Raise(l, lib.OptString(l, 2, "assertion failed!"))
	}
	return l.GetTop()
}

// collectgarbage replies like Lua's without effect: a run's memory is freed at its end.
func (lib baseLibrary) collectgarbage(l *lua.LState) int {
	option := lib.OptString(l, 1, "collect")
	lib.OptInt(l, 2, 0)
	switch option {
	case "collect", "restart", "stop":
		return vm.Return(l, lua.LNumber(0))
	case "count":
		return vm.Return(l, lua.LNumber(float64(lib.Meter.UsedBytes())/1024))
	case "setpause", "setstepmul":
		return vm.Return(l, lua.LNumber(200)) // Lua's own
	case "step":
		return vm.Return(l, lua.LTrue)
	}
	lib.RaiseArgument(l, 1, "invalid option '"+vm.NameInMessage(option)+"'")
	return 0
}

// gcinfo is Lua 5.0's collectgarbage("count").
func (lib baseLibrary) gcinfo(l *lua.LState) int {
	return vm.Return(l, lua.LNumber(lib.Meter.UsedBytes()/1024))
}

func (lib baseLibrary) raiseValue(l *lua.LState) int {
	v, level := l.Get(1), lib.OptInt(l, 2, 1)
	if vm.IsText(v) && level > 0 && level <= vm.MaxCalls {
		text := vm.Position(l, level) + string(vm.AppendText(nil, v))
		lib.Meter.Charge(len(text))
		v = lua.LString(text)
	}
	lib.Throw(l, v)
	return 0
}

func (lib baseLibrary) getmetatable(l *lua.LState) int {
	return vm.Return(l, lib.Metatable(l, lib.CheckAny(l, 1)))
}

func (lib baseLibrary) setmetatable(l *lua.LState) int {
	t := lib.CheckTable(l)
	mt := l.Get(2)
	if mt.Type() != lua.LTNil && mt.Type() != lua.LTTable || l.GetTop() < 2 {
		lib.RaiseArgument(l, 2, "nil or table expected")
	}
	if lib.IsSealed(t) {
		lib.ThrowReadOnly(l)
	}
	if l.GetMetaField(t, "__metatable") != lua.LNil {
		lib.Raise(l, "cannot change a protected metatable")
	}
	lib.SetMetatable(t, mt)
	return vm.Return(l, t)
}

func (lib baseLibrary) ipairs(l *lua.LState) int {
	t := lib.CheckTable(l)
	return vm.Return(l, lib.nextIndex, t, lua.LNumber(0))
}

func (lib baseLibrary) following(l *lua.LState) int {
	lib.Meter.Spend(2)
	t, i := lib.CheckTable(l), lib.CheckInt(l, 2)+1
	v := t.RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	return vm.Return(l, lua.LNumber(i), v)
}

func (lib baseLibrary) pairs(l *lua.LState) int {
	t := lib.CheckTable(l)
	return vm.Return(l, lib.nextKey, t, lua.LNil)
}

// next may have to skip removed fields.
func (lib baseLibrary) next(l *lua.LState) int {
	lib.Meter.Spend(2 + lib.Meter.Holes()>>2)
	k, v := lib.Readable(lib.CheckTable(l)).Next(l.Get(2))
	if k == lua.LNil {
		return vm.Return(l, k)
	}
	return vm.Return(l, k, v)
}

func (lib baseLibrary) rawequal(l *lua.LState) int {
	return vm.Return(l, lua.LBool(lib.CheckAny(l, 1) == lib.CheckAny(l, 2)))
}

func (lib baseLibrary) rawget(l *lua.LState) int {
	return vm.Return(l, lib.Readable(lib.CheckTable(l)).RawGet(lib.CheckAny(l, 2)))
}

func (lib baseLibrary) rawset(l *lua.LState) int {
	t := lib.Writable(l)
	lib.RawSet(l, t, lib.CheckAny(l, 2), lib.CheckAny(l, 3))
	return vm.Return(l, t)
}

func (lib baseLibrary) selectFrom(l *lua.LState) int {
	top := l.GetTop()
	if s, ok := l.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		return vm.Return(l, lua.LNumber(top-1))
	}
	n := lib.CheckInt(l, 1)
	if n < 0 {
		n += top
	}
	n = min(n, top)
	if n < 1 {
		lib.RaiseArgument(l, 1, "index out of range")
	}
	lib.Meter.Charge((top - n) * vm.ArgumentBytes)
	return top - n
}

func (lib baseLibrary) tonumber(l *lua.LState) int {
	base := lib.OptInt(l, 2, 10)
	v := lib.CheckAny(l, 1)
	if base == 10 {
		if f, ok := lib.ToNumber(v); ok {
			return vm.Return(l, lua.LNumber(f))
		}
		return vm.Return(l, lua.LNil)
	}
	text := lib.CheckString(l, 1)
	if base < 2 || base > 36 {
		lib.RaiseArgument(l, 2, "base out of range")
	}
	lib.Meter.Spend(min(len(text), vm.MaxNumberBytes) >> 2)
	if f, ok := vm.ParseInteger(text[:min(len(text), vm.MaxNumberBytes+1)], base); ok && len(text) <= vm.MaxNumberBytes {
		return vm.Return(l, lua.LNumber(f))
	}
	return vm.Return(l, lua.LNil)
}

func (lib baseLibrary) tostring(l *lua.LState) int {
	return vm.Return(l, lib.text(l, lib.CheckAny(l, 1)))
}

// text returns a value as by tostring.
func (lib baseLibrary) text(l *lua.LState, v lua.LValue) lua.LValue {
	if f := l.GetMetaField(v, "__tostring"); f != lua.LNil {
		return lib.Call1(l, f, v)
	}
	switch x := v.(type) {
	case lua.LString:
		return x
	case lua.LNumber:
		lib.Meter.Charge(vm.TextBytes(x))
		return lua.LString(vm.FormatNumber(float64(x)))
	case *lua.LFunction:
		v = lua.LString(fmt.Sprintf("function: %p", x))
	case *lua.LUserData:
		v = lua.LString("userdata: (nil)")
	}
	lib.Meter.Charge(vm.TextBytes(lua.LNumber(0)))
	return lua.LString(v.String())
}

func (lib baseLibrary) typeName(l *lua.LState) int {
	return vm.Return(l, lua.LString(lib.CheckAny(l, 1).Type().String()))
}

func (lib baseLibrary) unpack(l *lua.LState) int {
	t := lib.CheckTable(l)
	from := lib.OptInt(l, 2, 1)
	to := lib.OptInt(l, 3, t.Len())
	n := to - from + 1
	if n <= 0 {
		return 0
	}
	if n > vm.MaxResults-l.GetTop() {
		lib.Raise(l, "too many results to unpack")
	}
	lib.Meter.Charge(n * 2 * vm.ArgumentBytes)
	for i := from; i <= to; i++ {
		l.Push(vm.Element(t, i))
	}
	return n
}

// protected calls the first argument with the next n. It returns the error, and whether there was none.
func (lib baseLibrary) protected(l *lua.LState, n int) (problem lua.LValue, ok bool) {
	l.Insert(lib.caller, l.GetTop()-n)
	err := l.PCall(n+1, lua.MultRet, nil)
	lib.Meter.Rethrow()
	if err == nil {
		return nil, true
	}
	api, ok := err.(*lua.ApiError) //nolint:errorlint // gopher-lua returns it as it is
	if !ok || api.Type == lua.ApiErrorPanic {
		panic(err)
	}
	problem = api.Object
	if t, ok := problem.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			problem = text
		}
	}
	lib.Meter.Charge(vm.TextBytes(problem))
	return problem, false
}

func (lib baseLibrary) pcall(l *lua.LState) int {
	lib.CheckAny(l, 1)
	lib.Meter.Charge(l.GetTop() * vm.ArgumentBytes)
	if problem, ok := lib.protected(l, l.GetTop()-1); !ok {
		return vm.Return(l, lua.LFalse, problem)
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

// xpcall calls its handler after unwinding; without a debug library nobody sees the difference.
func (lib baseLibrary) xpcall(l *lua.LState) int {
	lib.CheckAny(l, 2)
	handler := l.Get(2)
	l.SetTop(1)
	if problem, ok := lib.protected(l, 0); !ok {
		return vm.Return(l, lua.LFalse, lib.Call1(l, handler, problem))
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

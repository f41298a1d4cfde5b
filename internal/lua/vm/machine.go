// Package vm is an interpreter for native functions, with bounds: a meter counts a run's cost, a rewritten
// chunk calls guards where gopher-lua would allocate unasked, and expensive compilations are refused.
// Messages and numbers are Lua's and Redis's. A Machine belongs to one goroutine at a time, except for
// Meter.Kill.
package vm

import (
	lua "github.com/yuin/gopher-lua"
)

// MaxCalls bounds the depth of calls; Redis allows 200 through C.
const MaxCalls = 400

// Sizes of an interpreter. The registry stays below its maximum: its growth is charged as memory.
const (
	registrySize = 2048
	registryStep = 16384
	registryMax  = 4 << 20
)

// Machine is an interpreter without libraries.
type Machine struct {
	L     *lua.LState
	Meter *Meter

	env      *lua.LTable // _G for functions: an empty table before globals, which sees all stores
	globals  *lua.LTable
	sealed   *lua.LTable // of tables that scripts must not change
	native   string      // last called native function, for messages
	verbatim bool        // the next error is the script's own
}

// New returns an interpreter with Attach's clocks.
func New(now, threadNow func() int64) *Machine {
	boundArrays()
	m := &Machine{L: lua.NewState(lua.Options{
		SkipOpenLibs:     true,
		CallStackSize:    MaxCalls,
		RegistrySize:     registrySize,
		RegistryGrowStep: registryStep,
		RegistryMaxSize:  registryMax,

		IncludeGoStackTrace: true, // of panics, for the log
	})}
	m.Meter = Attach(m.L, now, threadNow)
	m.L.Panic = m.onError
	m.sealed = m.L.CreateTable(0, 1)
	m.sealed.Metatable = m.sealed
	m.openGlobals()
	return m
}

// openGlobals creates the globals; env, which is empty, finds them by its metatable.
func (m *Machine) openGlobals() {
	m.globals, m.env = m.L.CreateTable(0, 40), m.L.CreateTable(0, 1)
	missing := m.L.CreateTable(0, 1)
	missing.RawSetString("__index", m.L.NewFunction(func(l *lua.LState) int {
		m.Raise(l, "Script attempted to access nonexistent global variable '"+NameInMessage(l.Get(2).String())+"'")
		return 0
	}))
	m.globals.Metatable = missing
	meta := m.L.CreateTable(0, 2)
	meta.RawSetString("__index", m.globals)
	meta.RawSetString("__newindex", m.L.NewFunction(func(l *lua.LState) int {
		m.raiseReadOnly(l)
		return 0
	}))
	m.env.Metatable = meta
	m.SetGlobal("_G", m.env)
	m.SetGlobal("_VERSION", lua.LString("Lua 5.1"))
	m.L.Env = m.env
}

// SetGlobal sets a global, past the seal.
func (m *Machine) SetGlobal(name string, v lua.LValue) { m.globals.RawSetString(name, v) }

// Functions maps names to native functions.
type Functions map[string]lua.LGFunction

func (m *Machine) OpenGlobals(functions Functions) { m.register(m.globals, functions) }

// OpenLibrary creates a sealed global table of functions.
func (m *Machine) OpenLibrary(name string, functions Functions) *lua.LTable {
	t := m.L.CreateTable(0, len(functions))
	m.register(t, functions)
	m.seal(t)
	m.SetGlobal(name, t)
	return t
}

// register adds functions to a table, each with its name for messages and its price.
func (m *Machine) register(into *lua.LTable, functions Functions) {
	for name, f := range functions {
		into.RawSetString(name, m.L.NewFunction(func(l *lua.LState) int {
			m.native = name
			m.Meter.Spend(2)
			return f(l)
		}))
	}
}

// NewProtected returns a function for PCall, which replaces the machine's error handler.
func (m *Machine) NewProtected(f lua.LGFunction) *lua.LFunction {
	return m.L.NewFunction(func(l *lua.LState) int {
		l.Panic = m.onError
		return f(l)
	})
}

// call calls a Lua value from a native function; the results are on the stack.
func (m *Machine) call(l *lua.LState, f lua.LValue, results int, args ...lua.LValue) {
	l.Push(f)
	for _, a := range args {
		l.Push(a)
	}
	l.Call(len(args), results)
}

// Call1 calls a Lua value from a native function and returns its only result.
func (m *Machine) Call1(l *lua.LState, f lua.LValue, args ...lua.LValue) lua.LValue {
	m.call(l, f, 1, args...)
	v := l.Get(-1)
	l.Pop(1)
	return v
}

// Release drops a finished run's data.
func (m *Machine) Release() {
	m.L.SetTop(0)
	m.L.Panic = m.onError
	m.verbatim = false
}

package lua

import (
	"context"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/message"
	"cellserver/internal/lua/rewrite"
	"cellserver/internal/resp"
)

// Sizes of an interpreter. The registry never reaches its maximum: what could fill it is charged for as memory.
const (
	maxCalls          = 400 // nested calls; Redis allows 200 through C
	registrySize      = 2048
	registryStep      = 16384
	registryMax       = 4 << 20
	maxIdleBytes      = 1 << 20 // a state that allocated more in a run is not kept
	replyDepth        = 200     // of nested arrays, both ways
	maxIndirections   = 100     // tables behind tables by __newindex
	maxArrayIndex     = 1 << 26 // gopher-lua's; longer ones are hashed
	globalsMetaPrefix = "Script attempted to access nonexistent global variable '"
)

// A state is an interpreter with Redis's library, and the run that has it at the moment.
type state struct {
	l       *vm.LState
	env     *vm.LTable // what functions see as _G: an empty table in front of globals, so that all stores are seen
	globals *vm.LTable
	sealed  *vm.LTable // the metatable of tables that scripts may not change
	null    *vm.LUserData
	main    *vm.LFunction // runs the script's function inside gopher-lua's protected call
	guard   [rewrite.Guards]vm.LValue

	meter    *bound.Meter
	script   *Script
	host     Host
	resp3    bool // what redis.setresp chose for the commands of the script
	rng      random
	native   string // the native function that was called last, for messages
	verbatim bool   // the next error is the script's own
	reply    resp.Writer
	maxReply int

	inputBytes int // of KEYS and ARGV

	args     [][]byte // of redis.call
	argBytes []byte
	answer   []byte // of the host
}

func newState(now func() int64) *state {
	st := &state{}
	st.l = vm.NewState(vm.Options{
		SkipOpenLibs:     true,
		CallStackSize:    maxCalls,
		RegistrySize:     registrySize,
		RegistryGrowStep: registryStep,
		RegistryMaxSize:  registryMax,

		IncludeGoStackTrace: true, // of panics, for the log
	})
	st.l.Panic = st.onError
	st.meter = bound.Attach(st.l, now)
	st.sealed = st.l.CreateTable(0, 1)
	st.sealed.Metatable = st.sealed
	st.null = st.l.NewUserData()
	st.openGlobals()
	st.openGuards()
	st.main = st.l.NewFunction(st.runMain)
	return st
}

// openGlobals builds the globals: env, which is empty, finds them by its metatable.
func (st *state) openGlobals() {
	st.globals, st.env = st.l.CreateTable(0, 40), st.l.CreateTable(0, 1)
	missing := st.l.CreateTable(0, 1)
	missing.RawSetString("__index", st.l.NewFunction(st.missingGlobal))
	st.globals.Metatable = missing
	meta := st.l.CreateTable(0, 2)
	meta.RawSetString("__index", st.globals)
	meta.RawSetString("__newindex", st.l.NewFunction(func(l *vm.LState) int {
		st.raise(l, readonlyText)
		return 0
	}))
	st.env.Metatable = meta
	st.globals.RawSetString("_G", st.env)
	st.globals.RawSetString("_VERSION", vm.LString("Lua 5.1"))
	st.l.Env = st.env
	st.openBase()
	st.openString()
	st.openTable()
	st.openMath()
	st.openBit()
	st.openJSON()
	st.openRedis()
}

const readonlyText = "Attempt to modify a readonly table"

func (st *state) missingGlobal(l *vm.LState) int {
	st.raise(l, globalsMetaPrefix+message.OneLine(l.Get(2).String())+"'")
	return 0
}

func (st *state) isSealed(t *vm.LTable) bool { return t == st.env || t.Metatable == st.sealed }

// A library is the native functions of one table of functions.
type library map[string]vm.LGFunction

// register puts functions into a table, each with its name for messages and a price for the call.
func (st *state) register(into *vm.LTable, functions library) {
	for name, f := range functions {
		into.RawSetString(name, st.l.NewFunction(func(l *vm.LState) int {
			st.native = name
			st.meter.Spend(2)
			return f(l)
		}))
	}
}

// openLibrary makes a global table of functions that scripts cannot change.
func (st *state) openLibrary(name string, functions library) *vm.LTable {
	t := st.l.CreateTable(0, len(functions))
	st.register(t, functions)
	t.Metatable = st.sealed
	st.globals.RawSetString(name, t)
	return t
}

func (st *state) begin(ctx context.Context, e *Engine, s *Script, host Host, resp3 bool, buf []byte) {
	st.meter.Begin(ctx.Done(), e.timeLimit, e.maxMemoryBytes)
	st.script, st.host = s, host
	st.resp3, st.verbatim = false, false
	st.rng.reset()
	st.reply = resp.Writer{Buf: buf, RESP3: resp3}
	st.maxReply = e.maxReplyBytes
}

// run runs the script and appends its reply.
func (st *state) run(keys, argv [][]byte) error {
	l := st.l
	st.inputBytes = 0
	st.globals.RawSetString("KEYS", st.stringTable(keys))
	st.globals.RawSetString("ARGV", st.stringTable(argv))
	l.Push(st.main)
	return l.PCall(0, 0, nil)
}

// runMain is a function inside PCall, which has put its own handler of errors in place of ours.
func (st *state) runMain(l *vm.LState) int {
	l.Panic = st.onError
	l.Push(l.NewFunctionFromProto(st.script.proto))
	for _, g := range st.script.guards {
		l.Push(st.guard[g])
	}
	l.Call(len(st.script.guards), 1)
	st.appendValue(l.Get(-1), 0)
	return 0
}

func (st *state) stringTable(list [][]byte) *vm.LTable {
	t := st.l.CreateTable(len(list), 0)
	for i, b := range list {
		st.meter.Widen(len(b))
		st.inputBytes += len(b)
		t.RawSetInt(i+1, vm.LString(b))
	}
	return t
}

func (st *state) reusable() bool {
	reason, _ := st.meter.Ended()
	return reason == "" && st.meter.UsedBytes() <= maxIdleBytes
}

// forget drops what belongs to the run that is over.
func (st *state) forget() {
	st.l.SetTop(0)
	st.l.Panic = st.onError
	st.script, st.host = nil, nil
	st.reply = resp.Writer{}
	const keptBytes = 64 << 10
	if st.inputBytes > keptBytes { // small ones stay until the next run replaces them
		st.globals.RawSetString("KEYS", vm.LNil)
		st.globals.RawSetString("ARGV", vm.LNil)
	}
	if cap(st.argBytes)+cap(st.answer)+16*cap(st.args) > keptBytes {
		st.args, st.argBytes, st.answer = nil, nil, nil
	}
}

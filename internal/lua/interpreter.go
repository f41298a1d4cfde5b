package lua

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

const (
	maxIdleBytes = 1 << 20  // interpreters with more allocation in a run are dropped
	keptBytes    = 64 << 10 // retained from a run
)

// interpreter is a machine with Redis's library, and its current run.
type interpreter struct {
	*vm.Machine
	random *random
	guards [vm.GuardCount]lua.LValue
	main   *lua.LFunction // runs the script in gopher-lua's protected call

	script        *Script
	host          Host
	reply         resp.Writer
	maxReplyBytes int
	inputBytes    int  // of KEYS and ARGV
	scriptRESP3   bool // redis.setresp's choice for the script's commands

	args     [][]byte // of redis.call
	argBytes []byte
	answer   []byte // of the host
}

func newInterpreter(now, threadNow func() int64, version string) *interpreter {
	m := vm.New(now, threadNow)
	openBase(m)
	vm.OpenMetatables(m, openString(m))
	openTable(m)
	openCJSON(m)
	in := &interpreter{
		Machine: m,
		random:  openMath(m),
		guards:  vm.NewGuards(m),
	}
	in.openRedis(version)
	in.main = m.NewProtected(in.runMain)
	return in
}

func (in *interpreter) begin(ctx context.Context, e *Engine, a Allowance, s *Script, host Host, resp3 bool, buf []byte) {
	in.Meter.Begin(ctx.Done(), a.Left(), e.config.MaxMemoryBytes)
	in.Meter.Terms(a.Held, a.Limit, a.Hint)
	in.random.Reset()
	in.script, in.host, in.scriptRESP3 = s, host, false
	in.reply = resp.Writer{Buf: buf, RESP3: resp3}
	in.maxReplyBytes = len(buf) + e.config.MaxReplyBytes
}

// run runs the script and appends its reply. A panic of the interpreter ends the run and the interpreter; the
// stack goes to the log, as the script's author cannot help.
func (in *interpreter) run(keys, argv [][]byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			in.fail(fmt.Sprintf("%v\n%s", r, debug.Stack()))
		}
	}()
	in.inputBytes = 0
	in.SetGlobal("KEYS", in.stringTable(keys))
	in.SetGlobal("ARGV", in.stringTable(argv))
	in.L.Push(in.main)
	err = in.L.PCall(0, 0, nil)
	if api, ok := err.(*lua.ApiError); ok && api.Type == lua.ApiErrorPanic { //nolint:errorlint // as it is
		in.fail(api.Error())
	}
	return err
}

func (in *interpreter) fail(stack string) {
	if reason, _ := in.Meter.Ended(); reason == "" {
		in.Meter.Fail("ERR script was ended by an internal error")
		in.host.Log(logWarning, "panic in script "+in.script.SHA1+": "+stack)
	}
}

func (in *interpreter) runMain(l *lua.LState) int {
	l.Push(l.NewFunctionFromProto(in.script.proto))
	for _, g := range in.script.guards {
		l.Push(in.guards[g])
	}
	l.Call(len(in.script.guards), 1)
	writeReply(in.Machine, &in.reply, l.Get(-1), in.scriptRESP3, in.maxReplyBytes)
	return 0
}

func (in *interpreter) stringTable(list [][]byte) *lua.LTable {
	if len(list) > vm.MaxElements {
		in.Meter.End("ERR script has more than " + strconv.Itoa(vm.MaxElements) + " keys or arguments")
	}
	t := in.L.CreateTable(len(list), 0)
	for i, b := range list {
		in.Meter.Spend(2 + len(b)>>6)
		in.Meter.Widen(len(b))
		in.inputBytes += len(b)
		t.RawSetInt(i+1, lua.LString(b))
	}
	return t
}

// forget drops the last run's data.
func (in *interpreter) forget() {
	in.Release()
	in.script, in.host = nil, nil
	if cap(in.argBytes)+cap(in.answer)+16*cap(in.args) > keptBytes {
		in.args, in.argBytes, in.answer = nil, nil, nil
	}
	in.reply = resp.Writer{}
	if in.inputBytes > keptBytes { // small ones stay until they are replaced
		in.SetGlobal("KEYS", lua.LNil)
		in.SetGlobal("ARGV", lua.LNil)
	}
}

package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// The emulated version of Redis.
const (
	redisVersion    = "7.0.15"
	redisVersionNum = 7<<16 | 0<<8 | 15
)

// Levels of redis.log.
const (
	logDebug = iota
	logVerbose
	logNotice
	logWarning
)

// Host is all that a script can reach.
type Host interface {
	// Call executes a command and appends its reply, perhaps an error, to buf, in RESP3 on request. Arguments
	// are valid during the call only.
	Call(args [][]byte, resp3 bool, buf []byte) []byte
	// Allows reports whether the script's user may execute a command, and whether it exists.
	Allows(args [][]byte) (allowed, known bool)
	// Log takes a line of redis.log with Redis's level, 0 (debug) to 3 (warning).
	Log(level int, message string)
}

// redisLibrary is a machine's table redis with the current host.
type redisLibrary struct {
	machine *vm.Machine
	host    Host
	resp3   bool // redis.setresp's choice for the script's commands

	args     [][]byte // of redis.call
	argBytes []byte
	answer   []byte // of the host
}

func openRedis(m *vm.Machine) *redisLibrary {
	lib := &redisLibrary{machine: m}
	t := m.OpenLibrary("redis", vm.Functions{
		"call":               lib.call,
		"pcall":              lib.pcall,
		"acl_check_cmd":      lib.aclCheck,
		"error_reply":        func(l *lua.LState) int { return lib.taggedReply(l, "err") },
		"status_reply":       func(l *lua.LState) int { return lib.taggedReply(l, "ok") },
		"log":                lib.log,
		"sha1hex":            lib.sha1hex,
		"setresp":            lib.setresp,
		"set_repl":           func(*lua.LState) int { return 0 }, // there are no replicas
		"replicate_commands": func(l *lua.LState) int { return vm.Return(l, lua.LTrue) },
	})
	for name, n := range map[string]int{
		"LOG_DEBUG": logDebug, "LOG_VERBOSE": logVerbose, "LOG_NOTICE": logNotice, "LOG_WARNING": logWarning,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": redisVersionNum,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(redisVersion))
	return lib
}

func (lib *redisLibrary) Begin(host Host) { lib.host, lib.resp3 = host, false }

// RESP3 reports whether the script has chosen RESP3.
func (lib *redisLibrary) RESP3() bool { return lib.resp3 }

// Release drops the host, and buffers beyond maxBytes.
func (lib *redisLibrary) Release(maxBytes int) {
	lib.host = nil
	if cap(lib.argBytes)+cap(lib.answer)+16*cap(lib.args) > maxBytes {
		lib.args, lib.argBytes, lib.answer = nil, nil, nil
	}
}

// call raises an error reply; pcall returns it.
func (lib *redisLibrary) call(l *lua.LState) int {
	v, failed := lib.command(l)
	if failed {
		lib.machine.Throw(l, v)
	}
	return vm.Return(l, v)
}

func (lib *redisLibrary) pcall(l *lua.LState) int {
	v, _ := lib.command(l)
	return vm.Return(l, v)
}

// aclCheck is redis.acl_check_cmd.
func (lib *redisLibrary) aclCheck(l *lua.LState) int {
	if problem := lib.collectArgs(l); problem != "" {
		lib.throwReply(l, problem)
	}
	allowed, known := lib.host.Allows(lib.args)
	if !known {
		lib.throwReply(l, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	return vm.Return(l, lua.LBool(allowed))
}

// command executes the arguments.
func (lib *redisLibrary) command(l *lua.LState) (v lua.LValue, failed bool) {
	if problem := lib.collectArgs(l); problem != "" {
		return lib.newTagged("err", problem), true
	}
	lib.answer = lib.host.Call(lib.args, lib.resp3, lib.answer[:0])
	if len(lib.answer) == 0 {
		return lib.newTagged("err", "ERR the command gave no reply"), true
	}
	failed = lib.answer[0] == '-'
	v, ok := readReply(lib.machine, lib.answer)
	if !ok {
		return lib.newTagged("err", "ERR the command gave a reply that is none"), true
	}
	return v, failed
}

// collectArgs copies the arguments of redis.call into lib.args.
func (lib *redisLibrary) collectArgs(l *lua.LState) (problem string) {
	n := l.GetTop()
	if n == 0 {
		return "ERR Please specify at least one argument for this redis lib call"
	}
	size := 0
	for i := 1; i <= n; i++ {
		if !vm.IsText(l.Get(i)) {
			return "ERR Lua redis lib command arguments must be strings or integers"
		}
		size += vm.TextBytes(l.Get(i))
	}
	lib.machine.Meter.Spend(size>>6 + n)
	if cap(lib.argBytes) < size {
		lib.machine.Meter.Charge(size)
		lib.argBytes = make([]byte, 0, size)
	}
	lib.args, lib.argBytes = lib.args[:0], lib.argBytes[:0]
	for i := 1; i <= n; i++ {
		from := len(lib.argBytes)
		switch x := l.Get(i).(type) {
		case lua.LString:
			lib.argBytes = append(lib.argBytes, x...)
		case lua.LNumber:
			lib.argBytes = vm.AppendExactNumber(lib.argBytes, float64(x))
		}
		lib.args = append(lib.args, lib.argBytes[from:len(lib.argBytes):len(lib.argBytes)])
	}
	return ""
}

func (lib *redisLibrary) newTagged(tag, text string) *lua.LTable {
	lib.machine.Meter.Charge(len(text))
	return lib.machine.NewTagged(tag, lua.LString(text))
}

// throwReply raises an error reply.
func (lib *redisLibrary) throwReply(l *lua.LState, text string) {
	lib.machine.Throw(l, lib.newTagged("err", text))
}

// taggedReply makes an error or a status of a text.
func (lib *redisLibrary) taggedReply(l *lua.LState, kind string) int {
	s, ok := l.Get(1).(lua.LString)
	text := string(s)
	switch {
	case !ok || l.GetTop() != 1:
		kind, text = "err", "ERR wrong number or type of arguments"
	case kind == "err":
		text = vm.ErrorReply(text)
	}
	return vm.Return(l, lib.newTagged(kind, text))
}

func (lib *redisLibrary) log(l *lua.LState) int {
	n := l.GetTop()
	if n < 2 {
		lib.throwReply(l, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := l.Get(1).(lua.LNumber)
	if !ok {
		lib.throwReply(l, "ERR First argument must be a number (log level).")
	}
	if level < logDebug || level > logWarning {
		lib.throwReply(l, "ERR Invalid debug level.")
	}
	size := 0
	for i := 2; i <= n; i++ {
		size += vm.TextBytes(l.Get(i)) + 1
	}
	lib.machine.Meter.Charge(size)
	line := make([]byte, 0, size)
	for i := 2; i <= n; i++ {
		if i > 2 {
			line = append(line, ' ')
		}
		line = vm.AppendText(line, l.Get(i))
	}
	lib.host.Log(int(level), cutLogLine(line))
	return 0
}

// maxLogLineBytes truncates a script's log line.
const maxLogLineBytes = 1 << 10

// cutLogLine truncates a long line before a character and marks it.
func cutLogLine(line []byte) string {
	if len(line) <= maxLogLineBytes {
		return string(line)
	}
	end := maxLogLineBytes
	for least := end - utf8.UTFMax; end > least && !utf8.RuneStart(line[end]); {
		end--
	}
	return string(line[:end]) + "..."
}

func (lib *redisLibrary) sha1hex(l *lua.LState) int {
	if l.GetTop() != 1 {
		lib.throwReply(l, "ERR wrong number of arguments")
	}
	text := vm.AppendText(nil, l.Get(1))
	lib.machine.Meter.Charge(len(text) + 2*sha1.Size)
	sum := sha1.New()
	for from, to := range lib.machine.Pieces(len(text), 32) {
		sum.Write(text[from:to])
	}
	return vm.Return(l, lua.LString(hex.EncodeToString(sum.Sum(nil))))
}

func (lib *redisLibrary) setresp(l *lua.LState) int {
	if l.GetTop() != 1 {
		lib.throwReply(l, "ERR redis.setresp() requires one argument.")
	}
	f, ok := lib.machine.ToNumber(l.Get(1))
	if !ok || f != 2 && f != 3 {
		lib.throwReply(l, "ERR RESP version must be 2 or 3.")
	}
	lib.resp3 = f == 3
	return 0
}

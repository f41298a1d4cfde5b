package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
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

// openRedis makes the table redis global. Its functions use the current run's host.
func (in *interpreter) openRedis(version string) {
	t := in.OpenLibrary("redis", vm.Functions{
		"call":               in.call,
		"pcall":              in.pcall,
		"acl_check_cmd":      in.aclCheck,
		"error_reply":        func(l *lua.LState) int { return in.taggedReply(l, "err") },
		"status_reply":       func(l *lua.LState) int { return in.taggedReply(l, "ok") },
		"log":                in.log,
		"sha1hex":            in.sha1hex,
		"setresp":            in.setresp,
		"set_repl":           func(*lua.LState) int { return 0 }, // there are no replicas
		"replicate_commands": func(l *lua.LState) int { return vm.Return(l, lua.LTrue) },
	})
	for name, n := range map[string]int{
		"LOG_DEBUG": logDebug, "LOG_VERBOSE": logVerbose, "LOG_NOTICE": logNotice, "LOG_WARNING": logWarning,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": versionNum(version),
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
}

// versionNum returns a version as scripts compare it: a byte each for its numbers.
func versionNum(version string) (num int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		num = num<<8 | n
	}
	return num
}

// call raises an error reply; pcall returns it.
func (in *interpreter) call(l *lua.LState) int {
	v, failed := in.command(l)
	if failed {
		in.Throw(l, v)
	}
	return vm.Return(l, v)
}

func (in *interpreter) pcall(l *lua.LState) int {
	v, _ := in.command(l)
	return vm.Return(l, v)
}

// aclCheck is redis.acl_check_cmd.
func (in *interpreter) aclCheck(l *lua.LState) int {
	if problem := in.collectArgs(l); problem != "" {
		in.throwReply(l, problem)
	}
	allowed, known := in.host.Allows(in.args)
	if !known {
		in.throwReply(l, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	return vm.Return(l, lua.LBool(allowed))
}

// command executes the arguments.
func (in *interpreter) command(l *lua.LState) (v lua.LValue, failed bool) {
	if problem := in.collectArgs(l); problem != "" {
		return in.taggedText("err", problem), true
	}
	in.answer = in.host.Call(in.args, in.scriptRESP3, in.answer[:0])
	if len(in.answer) == 0 {
		return in.taggedText("err", "ERR the command gave no reply"), true
	}
	failed = in.answer[0] == '-'
	v, ok := readReply(in.Machine, in.answer)
	if !ok {
		return in.taggedText("err", "ERR the command gave a reply that is none"), true
	}
	return v, failed
}

// collectArgs copies the arguments of redis.call into in.args.
func (in *interpreter) collectArgs(l *lua.LState) (problem string) {
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
	in.Meter.Spend(size>>6 + n)
	if cap(in.argBytes) < size {
		in.Meter.Charge(size)
		in.argBytes = make([]byte, 0, size)
	}
	in.args, in.argBytes = in.args[:0], in.argBytes[:0]
	for i := 1; i <= n; i++ {
		from := len(in.argBytes)
		switch x := l.Get(i).(type) {
		case lua.LString:
			in.argBytes = append(in.argBytes, x...)
		case lua.LNumber:
			in.argBytes = vm.AppendExactNumber(in.argBytes, float64(x))
		}
		in.args = append(in.args, in.argBytes[from:len(in.argBytes):len(in.argBytes)])
	}
	return ""
}

func (in *interpreter) taggedText(tag, text string) *lua.LTable {
	in.Meter.Charge(len(text))
	return in.NewTagged(tag, lua.LString(text))
}

// throwReply raises an error reply.
func (in *interpreter) throwReply(l *lua.LState, text string) {
	in.Throw(l, in.taggedText("err", text))
}

// taggedReply makes an error or a status of a text.
func (in *interpreter) taggedReply(l *lua.LState, kind string) int {
	s, ok := l.Get(1).(lua.LString)
	text := string(s)
	switch {
	case !ok || l.GetTop() != 1:
		kind, text = "err", "ERR wrong number or type of arguments"
	case kind == "err":
		text = vm.ErrorReply(text)
	}
	return vm.Return(l, in.taggedText(kind, text))
}

func (in *interpreter) log(l *lua.LState) int {
	n := l.GetTop()
	if n < 2 {
		in.throwReply(l, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := l.Get(1).(lua.LNumber)
	if !ok {
		in.throwReply(l, "ERR First argument must be a number (log level).")
	}
	if level < logDebug || level > logWarning {
		in.throwReply(l, "ERR Invalid debug level.")
	}
	size := 0
	for i := 2; i <= n; i++ {
		size += vm.TextBytes(l.Get(i)) + 1
	}
	in.Meter.Charge(size)
	line := make([]byte, 0, size)
	for i := 2; i <= n; i++ {
		if i > 2 {
			line = append(line, ' ')
		}
		line = vm.AppendText(line, l.Get(i))
	}
	in.host.Log(int(level), cutLogLine(line))
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

func (in *interpreter) sha1hex(l *lua.LState) int {
	if l.GetTop() != 1 {
		in.throwReply(l, "ERR wrong number of arguments")
	}
	text := vm.AppendText(nil, l.Get(1))
	in.Meter.Charge(len(text) + 2*sha1.Size)
	sum := sha1.New()
	for from, to := range in.Pieces(len(text), 32) {
		sum.Write(text[from:to])
	}
	return vm.Return(l, lua.LString(hex.EncodeToString(sum.Sum(nil))))
}

func (in *interpreter) setresp(l *lua.LState) int {
	if l.GetTop() != 1 {
		in.throwReply(l, "ERR redis.setresp() requires one argument.")
	}
	f, ok := in.ToNumber(l.Get(1))
	if !ok || f != 2 && f != 3 {
		in.throwReply(l, "ERR RESP version must be 2 or 3.")
	}
	in.scriptRESP3 = f == 3
	return 0
}

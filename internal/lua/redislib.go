package lua

import (
	"crypto/sha1"
	"encoding/hex"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/number"
)

// The version of Redis whose scripting this is.
const (
	redisVersion    = "7.0.15"
	redisVersionNum = 7<<16 | 0<<8 | 15
)

// The levels of redis.log.
const (
	logDebug = iota
	logVerbose
	logNotice
	logWarning
)

func (st *state) openRedis() {
	t := st.openLibrary("redis", library{
		"call":               st.redisCall,
		"pcall":              st.redisPCall,
		"error_reply":        func(l *vm.LState) int { return st.taggedReply(l, "err") },
		"status_reply":       func(l *vm.LState) int { return st.taggedReply(l, "ok") },
		"log":                st.redisLog,
		"sha1hex":            st.redisSHA1,
		"setresp":            st.redisSetResp,
		"set_repl":           func(*vm.LState) int { return 0 }, // there are no replicas that it could concern
		"replicate_commands": func(l *vm.LState) int { l.Push(vm.LTrue); return 1 },
	})
	for name, n := range map[string]int{
		"LOG_DEBUG": logDebug, "LOG_VERBOSE": logVerbose, "LOG_NOTICE": logNotice, "LOG_WARNING": logWarning,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": redisVersionNum,
	} {
		t.RawSetString(name, vm.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", vm.LString(redisVersion))
}

// redisCall raises an error reply, redisPCall returns it.
func (st *state) redisCall(l *vm.LState) int {
	v, failed := st.command(l)
	if failed {
		st.throw(l, v)
	}
	l.Push(v)
	return 1
}

func (st *state) redisPCall(l *vm.LState) int {
	v, _ := st.command(l)
	l.Push(v)
	return 1
}

// command has the host execute the arguments.
func (st *state) command(l *vm.LState) (reply vm.LValue, failed bool) {
	if problem := st.collectArgs(l); problem != "" {
		return st.tagged("err", problem), true
	}
	st.answer = st.host.Call(st.args, st.resp3, st.answer[:0])
	if len(st.answer) == 0 {
		return st.tagged("err", "ERR the command gave no reply"), true
	}
	failed = st.answer[0] == '-'
	r := replyReader{st: st, buf: st.answer}
	reply = r.value(0)
	if r.bad {
		return st.tagged("err", "ERR the command gave a reply that is none"), true
	}
	return reply, failed
}

// collectArgs copies the arguments of redis.call into st.args.
func (st *state) collectArgs(l *vm.LState) (problem string) {
	n := l.GetTop()
	if n == 0 {
		return "ERR Please specify at least one argument for this redis lib call"
	}
	size := 0
	for i := 1; i <= n; i++ {
		if !isText(l.Get(i)) {
			return "ERR Lua redis lib command arguments must be strings or integers"
		}
		size += textBytes(l.Get(i))
	}
	st.meter.Spend(size>>6 + n)
	if cap(st.argBytes) < size {
		st.meter.Charge(size)
		st.argBytes = make([]byte, 0, size)
	}
	st.args, st.argBytes = st.args[:0], st.argBytes[:0]
	for i := 1; i <= n; i++ {
		from := len(st.argBytes)
		switch x := l.Get(i).(type) {
		case vm.LString:
			st.argBytes = append(st.argBytes, x...)
		case vm.LNumber:
			st.argBytes = number.AppendExact(st.argBytes, float64(x))
		}
		st.args = append(st.args, st.argBytes[from:len(st.argBytes):len(st.argBytes)])
	}
	return ""
}

func (st *state) tagged(kind, text string) *vm.LTable {
	st.meter.Charge(bound.TableBytes + len(text))
	t := st.l.CreateTable(0, 1)
	t.RawSetString(kind, vm.LString(text))
	return t
}

// taggedReply makes an error or a status of a text. An error without a code gets ERR, and a dash in front is its mark.
func (st *state) taggedReply(l *vm.LState, kind string) int {
	s, ok := l.Get(1).(vm.LString)
	text := string(s)
	switch {
	case !ok || l.GetTop() != 1:
		kind, text = "err", "ERR wrong number or type of arguments"
	case kind == "err" && text != "" && text[0] == '-':
		text = text[1:]
	case kind == "err" && !hasCode(text):
		text = "ERR " + text
	}
	l.Push(st.tagged(kind, text))
	return 1
}

// hasCode reports whether an error's text has several words, of which the first is its code.
func hasCode(text string) bool {
	for i := range len(text) {
		if text[i] == ' ' {
			return true
		}
	}
	return false
}

func (st *state) redisLog(l *vm.LState) int {
	n := l.GetTop()
	if n < 2 {
		st.throwError(l, "ERR redis.log() requires two arguments or more.")
	}
	level, ok := l.Get(1).(vm.LNumber)
	if !ok {
		st.throwError(l, "ERR First argument must be a number (log level).")
	}
	if level < logDebug || level > logWarning {
		st.throwError(l, "ERR Invalid debug level.")
	}
	size := 0
	for i := 2; i <= n; i++ {
		size += textBytes(l.Get(i)) + 1
	}
	st.meter.Charge(size)
	line := make([]byte, 0, size)
	for i := 2; i <= n; i++ {
		if i > 2 {
			line = append(line, ' ')
		}
		line = appendText(line, l.Get(i))
	}
	st.host.Log(int(level), string(line))
	return 0
}

func (st *state) redisSHA1(l *vm.LState) int {
	if l.GetTop() != 1 {
		st.throwError(l, "ERR wrong number of arguments")
	}
	text := appendText(nil, l.Get(1))
	st.meter.Charge(len(text) + 2*sha1.Size)
	st.meter.Spend(len(text) >> 4)
	sum := sha1.Sum(text)
	l.Push(vm.LString(hex.EncodeToString(sum[:])))
	return 1
}

func (st *state) redisSetResp(l *vm.LState) int {
	if l.GetTop() != 1 {
		st.throwError(l, "ERR redis.setresp() requires one argument.")
	}
	f, ok := st.toNumber(l.Get(1))
	if !ok || f != 2 && f != 3 {
		st.throwError(l, "ERR RESP version must be 2 or 3.")
	}
	st.resp3 = f == 3
	return 0
}

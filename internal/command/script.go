package command

import (
	"bytes"
	"context"
	"crypto/sha1"
	"log/slog"
	"strings"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

func eval(s *Session, args [][]byte) error { return s.eval(args, false) }

func evalRO(s *Session, args [][]byte) error { return s.eval(args, true) }

func evalSHA(s *Session, args [][]byte) error { return s.evalSHA(args, false) }

func evalSHARO(s *Session, args [][]byte) error { return s.evalSHA(args, true) }

func (s *Session) eval(args [][]byte, readOnly bool) error {
	keys, argv, err := scriptArgs(args)
	if err != nil {
		return err
	}
	script, err := s.engine.config.Scripts.Evaluate(args[1])
	if err != nil {
		return err
	}
	return s.runScript(script, keys, argv, readOnly)
}

func (s *Session) evalSHA(args [][]byte, readOnly bool) error {
	if len(args[1]) != 2*sha1.Size { // Redis looks at nothing else then
		return errNoScript
	}
	keys, argv, err := scriptArgs(args)
	if err != nil {
		return err
	}
	script := s.engine.config.Scripts.Lookup(args[1])
	if script == nil {
		return errNoScript
	}
	return s.runScript(script, keys, argv, readOnly)
}

// scriptKeys is where EVAL and its like have their keys.
func scriptKeys(access ...string) keySpec { return keySpec{counted: 2, flags: access} }

// scriptArgs checks how many keys there are said to be, and splits them from the arguments.
func scriptArgs(args [][]byte) (keys, argv [][]byte, err error) {
	n, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return nil, nil, errNotInteger
	case n > int64(len(args)-3):
		return nil, nil, replyError("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return nil, nil, replyError("ERR Number of keys can't be negative")
	}
	return args[3 : 3+n], args[3+n:], nil
}

// runScript runs a script, on a goroutine of its own unless it is one call that needs no interpreter.
func (s *Session) runScript(script *lua.Script, keys, argv [][]byte, readOnly bool) error {
	if readOnly && script.Flags.Shebang && !script.Flags.NoWrites {
		return replyError("ERR Can not execute a script with write flag using *_ro command.")
	}
	readOnly = readOnly || script.Flags.NoWrites
	if !readOnly && s.runNative(script, keys, argv) {
		return nil
	}
	if s.scriptsTime >= s.engine.config.Scripts.TimeLimit() {
		return errScriptsTooLong
	}
	run := &scriptRun{session: s, script: script, readOnly: readOnly, keys: cloneAll(keys), argv: cloneAll(argv)}
	for _, name := range run.keys {
		run.declared = append(run.declared, s.key(name))
	}
	s.asideIn(s.engine.scripts, run.run, run.finish)
	return nil
}

// finish replies on the session that waits.
func (r *scriptRun) finish(s *Session) {
	if len(r.told) > 0 {
		s.tellLines(r.told)
	}
	s.w.Buf = append(s.w.Buf, r.reply...)
	if r.reply[0] != '-' {
		return
	}
	s.row.stats.failed.Add(1)
	text, _, _ := strings.Cut(string(r.reply[1:]), "\r\n")
	if r.lastError == "" || !strings.HasPrefix(text, r.lastError) { // else it was counted when the command failed
		s.engine.errors.count(text)
	}
}

func cloneAll(args [][]byte) [][]byte {
	all := make([][]byte, len(args))
	for i, arg := range args {
		all[i] = bytes.Clone(arg)
	}
	return all
}

// runNative does what a script would that is one call of CL.THROTTLE, the one that clients send which have no such
// command. It is false if the interpreter has to do it: for its errors, and for who may not do everything.
func (s *Session) runNative(script *lua.Script, keys, argv [][]byte) bool {
	if script.Native == nil || s.inner != outer || !s.user.Unrestricted() {
		return false
	}
	var argsRoom [8][]byte
	args, ok := script.Native.Args(argsRoom[:0], keys, argv)
	if !ok || len(args) < 2 || len(args[1]) > s.engine.config.MaxKeyBytes || !declares(keys, args[1]) {
		return false
	}
	one := s.scratch.batch[:1] // it was flushed
	if err := s.readThrottle(args, &one[0]); err != nil {
		return false
	}
	if s.monitored {
		s.tellLines(s.appendLine(nil, true, args))
	}
	s.decide(one)
	s.scratch.tally.nativeScript()
	// The script's reply is made of the command's, behind it, and takes its place.
	from := len(s.w.Buf)
	replyThrottle(&s.w, &one[0].Result)
	to := len(s.w.Buf)
	s.w.Buf = script.Native.AppendReply(s.w.Buf[from:], s.w.Buf, s.w.RESP3)
	s.w.Buf = append(s.w.Buf[:from], s.w.Buf[to:]...)
	clear(one)
	return true
}

func declares(keys [][]byte, key []byte) bool {
	for _, k := range keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}

// scriptRun is a script at work.
type scriptRun struct {
	session    *Session // which waits
	script     *lua.Script
	readOnly   bool
	keys, argv [][]byte
	declared   []shard.Key

	reply     []byte
	lastError string // of a command
	ended     bool   // by a bound
	told      []byte // for MONITOR
}

func (r *scriptRun) run() {
	r.attempt()
	r.session.engine.outcomes.count(r)
}

func (r *scriptRun) attempt() {
	e := r.session.engine
	if in := r.session.space; in != nil { // of EXEC
		r.runInside(in, r.session.spaceNs)
		return
	}
	e.optimistically(r.declared, func(tx *shard.Tx, nowNs int64) (keep bool) { return r.runIn(tx.ByKey(), nowNs) })
}

// runInside runs the script as a part of a transaction, and takes back what it wrote if it was ended.
func (r *scriptRun) runInside(in keySpace, nowNs int64) {
	began := time.Now()
	defer func() { r.session.scriptsTime += time.Since(began) }()
	before := make([]int64, len(r.declared))
	for i, key := range r.declared {
		before[i], _ = in.TAT(key)
	}
	if r.runIn(in, nowNs) {
		return
	}
	for i, key := range r.declared {
		if now, _ := in.TAT(key); now != before[i] {
			in.SetTAT(key, before[i])
		}
	}
}

// runIn runs the script and reports whether its writes are to be kept: also when it failed, as in Redis, but not
// when it was ended.
func (r *scriptRun) runIn(in keySpace, nowNs int64) (keep bool) {
	s := r.session.child(inScript)
	s.readOnly, s.keys = r.readOnly, r.declared
	s.enter(in, nowNs)
	defer s.leave()
	reply, err := s.engine.config.Scripts.Run(context.Background(), r.script, r.keys, r.argv, scriptHost{s}, s.w.RESP3, nil)
	r.reply, r.lastError, r.told, r.ended = reply, s.lastError, s.told, err != nil
	return !r.ended
}

// scriptHost is what a script reaches by redis.call.
type scriptHost struct{ s *Session }

// Call implements lua.Host.
func (h scriptHost) Call(args [][]byte, resp3 bool, buf []byte) []byte {
	s := h.s
	s.w = resp.Writer{Buf: buf, RESP3: resp3}
	s.dispatch(args)
	s.flush()
	return s.w.Buf
}

// Log implements lua.Host.
func (h scriptHost) Log(level int, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	h.s.engine.config.Log.Log(context.Background(), levels[min(max(level, 0), len(levels)-1)], "script: "+message, "client", h.s.client.peer.Addr)
}

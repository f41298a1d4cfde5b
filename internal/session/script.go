package session

import (
	"bytes"
	"context"
	"crypto/sha1"
	"log/slog"
	"slices"
	"strings"

	"cellserver/internal/argument"
	"cellserver/internal/catalog"
	"cellserver/internal/lua"
	"cellserver/internal/observe"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/transact"
)

func eval(s *Session, args [][]byte) error { return s.eval(args, false) }

func evalRO(s *Session, args [][]byte) error { return s.eval(args, true) }

func evalSHA(s *Session, args [][]byte) error { return s.evalSHA(args, false) }

func evalSHARO(s *Session, args [][]byte) error { return s.evalSHA(args, true) }

func (s *Session) eval(args [][]byte, readOnly bool) error {
	keys, argv, err := argument.Script(args)
	if err != nil {
		return err
	}
	script, err := s.engine.config.Scripts.Evaluate(args[1])
	if err != nil {
		return err
	}
	return s.runScript(args[0], script, keys, argv, readOnly)
}

func (s *Session) evalSHA(args [][]byte, readOnly bool) error {
	if len(args[1]) != 2*sha1.Size { // Redis looks at nothing else then
		return reply.ErrNoScript
	}
	keys, argv, err := argument.Script(args)
	if err != nil {
		return err
	}
	script := s.engine.config.Scripts.Lookup(args[1])
	if script == nil {
		return reply.ErrNoScript
	}
	return s.runScript(args[0], script, keys, argv, readOnly)
}

// runScript runs a script, in the background unless it is one call that needs no interpreter.
func (s *Session) runScript(name []byte, script *lua.Script, keys, argv [][]byte, readOnly bool) error {
	if readOnly && script.Flags.Shebang && !script.Flags.NoWrites {
		return reply.Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	readOnly = readOnly || script.Flags.NoWrites
	if !readOnly && s.runNative(name, script, keys, argv) {
		return nil
	}
	switch {
	case s.inner != nil && s.inner.scriptsNs >= int64(s.engine.config.Scripts.TimeLimit()):
		return reply.ErrScriptsTooLong
	case s.engine.txs == nil:
		return reply.ErrNoTransactions
	}
	run := &scriptRun{
		client: s, command: s.engine.config.Catalog.Lookup(name), script: script, readOnly: readOnly,
		keys: argument.CloneAll(keys), argv: argument.CloneAll(argv),
	}
	for _, key := range run.keys {
		run.declared = append(run.declared, store.Key{DB: s.db, Name: key})
	}
	err := s.inBackground(s.engine.scripts, run.run, run.finish)
	if s.pending != nil {
		s.holdArguments(argument.Memory(run.keys) + argument.Memory(run.argv) + len(run.declared)*declaredBytes)
	}
	return err
}

// declaredBytes is what a declared key takes in addition to its name.
const declaredBytes = 32

// runNative does what a script would that is one call of CL.THROTTLE, the one that clients send which have no such
// command. It is false if the interpreter has to do it: for its errors, and for who may not do everything.
func (s *Session) runNative(name []byte, script *lua.Script, keys, argv [][]byte) bool {
	if script.Native == nil || s.role != outer || !s.user.Unrestricted() {
		return false
	}
	var argsRoom [8][]byte
	args, ok := script.Native.Args(argsRoom[:0], keys, argv)
	if !ok || len(args) < 2 || !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, args[1]) }) {
		return false
	}
	one := s.scratch.batch[:1] // it was flushed
	if err := argument.Throttle(&one[0], s.db, args, s.engine.config.Reading); err != nil {
		return false
	}
	if s.scratch.limitsNewKeys && s.mayMakeKey(&one[0]) != nil {
		clear(one)
		return false
	}
	if s.monitored {
		s.sendMonitored(s.appendLine(nil, true, args))
	}
	if later := s.decide(one); later != nil {
		s.await(later, func(s *Session, answered []store.Request) error { return s.replyNative(script, &answered[0]) })
	} else if err := s.replyNative(script, &one[0]); err != nil {
		s.failCommand(s.engine.config.Catalog.Lookup(name), err)
	}
	clear(one)
	return true
}

// replyNative replies what the script would: that is made of the command's reply, behind it, and takes its place.
func (s *Session) replyNative(script *lua.Script, q *store.Request) error {
	if q.Err != nil { // which the call fails with, and so the script
		records := s.engine.config.Records
		records.Failed(s.engine.decider.Command)
		records.Script(observe.ScriptFailed)
		return reply.StoreFailed(q.Err)
	}
	s.scratch.local.NativeScript()
	from := len(s.w.Buf)
	replyThrottle(&s.w, &q.Result)
	to := len(s.w.Buf)
	s.w.Buf = script.Native.AppendReply(s.w.Buf[from:], s.w.Buf, s.w.RESP3)
	s.w.Buf = append(s.w.Buf[:from], s.w.Buf[to:]...)
	return nil
}

// scriptRun is a script at work.
type scriptRun struct {
	client     *Session         // which waits
	command    *catalog.Command // that runs it
	script     *lua.Script
	readOnly   bool
	keys, argv [][]byte
	declared   []store.Key

	reply []byte
	ended bool  // by a bound
	left  inner // of the last attempt
}

func (r *scriptRun) run(ctx context.Context) {
	if r.client.inner != nil {
		r.runInExec(ctx)
	} else {
		e := r.client.engine
		transact.Optimistically(e.txs, e.config.Now, r.declared, func(in *transact.Space) (keep bool) { return r.attempt(ctx, in) })
	}
	outcome := observe.ScriptCompleted
	switch {
	case r.ended:
		outcome = observe.ScriptEnded
	case r.reply[0] == '-':
		outcome = observe.ScriptFailed
	}
	r.client.engine.config.Records.Script(outcome)
	r.client.settle(&r.left)
}

// runInExec runs the script as a part of a transaction, and takes back what it wrote if it was ended.
func (r *scriptRun) runInExec(ctx context.Context) {
	s := r.client
	beganNs := s.engine.config.Now()
	defer func() { s.inner.scriptsNs += s.engine.config.Now() - beganNs }()
	transact.OrUndo(s.space, r.declared, func() (keep bool) { return r.attempt(ctx, s.space) })
}

// attempt runs the script and reports whether its writes are to be kept: also when it failed, as in Redis, but not when
// it was ended.
func (r *scriptRun) attempt(ctx context.Context, in *transact.Space) (keep bool) {
	s := r.client.child(ctx, inScript, in)
	s.inner.readOnly, s.inner.declared = r.readOnly, r.declared
	s.borrow()
	defer s.giveBack()
	replied, err := s.engine.config.Scripts.Run(ctx, r.script, r.keys, r.argv, scriptHost{s}, s.w.RESP3, nil)
	r.reply, r.ended, r.left = replied, err != nil, *s.inner
	return !r.ended
}

// finish replies on the session that waits.
func (r *scriptRun) finish(s *Session) error {
	s.w.Buf = append(s.w.Buf, r.reply...)
	if r.reply[0] != '-' {
		return nil
	}
	records := s.engine.config.Records
	records.Failed(r.command)
	text, _, _ := strings.Cut(string(r.reply[1:]), "\r\n")
	if r.left.lastError == "" || !strings.HasPrefix(text, r.left.lastError) { // else it was counted when the command failed
		records.Errors.Count(text)
	}
	return nil
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

// Log implements lua.Host. The line is written when the script has let go of its keys.
func (h scriptHost) Log(level int, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	h.s.inner.log(logLine{levels[min(max(level, 0), len(levels)-1)], "script: " + message})
}

package session

import (
	"bytes"
	"context"
	"crypto/sha1"
	"slices"
	"strings"

	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
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
	var script *lua.Script
	if s.inner != nil { // EXEC has compiled it
		script, err = s.inner.compiled.get(args[1])
	} else {
		script = s.engine.config.Scripts.Known(args[1])
	}
	switch {
	case err != nil:
		return err
	case script != nil:
		return s.runScript(args[0], script, keys, argv, readOnly)
	}
	run := s.newScriptRun(args[0], keys, argv, readOnly)
	run.source = bytes.Clone(args[1])
	return s.begin(run)
}

// scriptLoad is SCRIPT LOAD. Compiling may take milliseconds, so it is done as scripts are run.
func scriptLoad(s *Session, args [][]byte) error {
	scripts := s.engine.config.Scripts
	if script := scripts.Loaded(args[2]); script != nil {
		s.w.BulkString(script.SHA1)
		return nil
	}
	source := bytes.Clone(args[2])
	var script *lua.Script
	var problem error
	return s.inBackground(s.engine.scripts, func(context.Context) { script, problem = scripts.Load(source) }, func(s *Session) error {
		if problem != nil {
			return problem
		}
		s.w.BulkString(script.SHA1)
		return nil
	})
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
	if err := mayRun(script, readOnly); err != nil {
		return err
	}
	if s.engine.remote != nil && script.Native == nil {
		return reply.ErrOneCallScript
	}
	if !readOnly && !script.Flags.NoWrites && s.runNative(name, script, keys, argv) {
		return nil
	}
	switch {
	case s.inner != nil && s.inner.scripts.Left() <= 0:
		s.inner.timedOut = true
		return reply.ErrScriptsTooLong
	case s.engine.txs == nil && s.engine.remote == nil:
		return reply.ErrNoTransactions
	}
	run := s.newScriptRun(name, keys, argv, readOnly)
	run.script = script
	return s.begin(run)
}

// begin has a script run in its turn.
func (s *Session) begin(run *scriptRun) error {
	return s.inBackground(s.engine.scripts, run.run, run.finish)
}

func mayRun(script *lua.Script, readOnly bool) error {
	if readOnly && script.Flags.Shebang && !script.Flags.NoWrites {
		return reply.Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	return nil
}

// newScriptRun returns the run of a script that is still to be set, or its source.
func (s *Session) newScriptRun(name []byte, keys, argv [][]byte, readOnly bool) *scriptRun {
	return &scriptRun{
		client: s, command: s.engine.config.Catalog.Lookup(name), readOnly: readOnly,
		keys: keep(keys), argv: keep(argv),
	}
}

// runNative does what a script would that is one call of CL.THROTTLE or of a command like it, as clients send it which have
// no such command. It is false if the interpreter has to do it: for its errors, and for who may not do everything.
func (s *Session) runNative(name []byte, script *lua.Script, keys, argv [][]byte) bool {
	if script.Native == nil || !s.mayRunNative() || len(keys)+len(argv) > resp.LongArgs {
		return false
	}
	args, ok := script.Native.Args(s.scratch.call[:0], keys, argv)
	one := s.scratch.batch[:1] // it was flushed
	defer func() {
		clear(s.scratch.call[:]) // see giveBack
		s.forget(one)
	}()
	if !ok {
		return false
	}
	command := s.engine.config.Catalog.Called(args)
	if command == nil || !command.Batches || !s.mayCallNative(command, args) {
		return false
	}
	if err := s.engine.requests[command.ID](&one[0], s.db, args, s.engine.config.Reading, &s.scratch.joined); err != nil {
		return false
	}
	if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, one[0].Key.Name) }) { // it was not declared
		return false
	}
	if one[0].Quantity < 0 && s.isFrozen() || s.scratch.limitsNewKeys && one[0].MakesKey() && s.mayMakeKey(&one[0].Key) != nil {
		return false
	}
	if s.monitored {
		s.sendMonitored(s.appendLine(nil, true, args))
	}
	if later := s.decide(command, one); later != nil {
		s.await(later, func(s *Session, answered []store.Request) error { return s.replyNative(command, script, answered) })
	} else if err := s.replyNative(command, script, one); err != nil {
		s.failCommand(held{command: s.engine.config.Catalog.Lookup(name)}, err)
	}
	return true
}

// mayRunNative reports whether a script needs no interpreter. Over a store on other machines none is to have one but for its errors.
func (s *Session) mayRunNative() bool {
	if s.engine.remote != nil {
		return s.role != inScript
	}
	return s.role == outer && s.user.Unrestricted()
}

// mayCallNative reports whether the user's rules allow the script's call; that they do not, the interpreter finds out, too.
func (s *Session) mayCallNative(c *catalog.Command, args [][]byte) bool {
	if s.user.Unrestricted() {
		return true
	}
	reason, _, _ := c.Check(s.user, args)
	return reason == acl.Allowed
}

// replyNative replies what the script would: that is made of the command's reply, behind it, and takes its place.
func (s *Session) replyNative(c *catalog.Command, script *lua.Script, one []store.Request) error {
	q := &one[0]
	if q.Err != nil { // which the call fails with, and so the script
		records := s.engine.config.Records
		records.Failed(c)
		records.Script(observe.ScriptFailed)
		return reply.StoreFailed(q.Err)
	}
	s.scratch.local.NativeScript()
	from := len(s.w.Buf)
	s.replyRequest(q)
	s.countNamed(one)
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
	source     []byte // of a script that is to be compiled first
	readOnly   bool
	keys, argv [][]byte
	declared   declared

	scripts lua.Allowance // of all attempts, where it is not EXEC's
	newKeys newKeys       // likewise

	problem error  // it could not be compiled
	reply   []byte // behind headBytes of room; nil if it was not run
	ended   bool   // by a bound
	wrote   bool
	left    inner // of the last attempt
}

func (r *scriptRun) run(ctx context.Context) {
	if r.source != nil {
		e := r.client.engine
		r.script, r.problem = e.config.Scripts.Evaluate(r.source)
		if r.problem != nil || r.script.Native != nil || e.txs == nil || mayRun(r.script, r.readOnly) != nil {
			return // finish does the rest, as if it had been known
		}
	}
	r.declared.keys = keysOf(r.client.db, r.keys)
	if r.client.inner != nil {
		r.runInExec(ctx)
	} else {
		r.runAlone(ctx)
	}
	outcome := observe.ScriptCompleted
	switch {
	case r.ended:
		outcome = observe.ScriptEnded
	case r.reply[headBytes] == '-':
		outcome = observe.ScriptFailed
	}
	r.client.engine.config.Records.Script(outcome)
	r.client.settle(&r.left)
}

func (r *scriptRun) runAlone(ctx context.Context) {
	e := r.client.engine
	if err := transact.CheckKeys(r.declared.keys); err != nil {
		r.fail(err)
		return
	}
	r.declared.index()
	r.scripts = e.config.Scripts.Allowance()
	if e.remote != nil {
		r.attempt(ctx, &transact.Space{Keys: transact.NoKeys{}, NowNs: e.config.Now()}, &r.scripts)
		return
	}
	c := contention{ctx: ctx, scripts: &r.scripts}
	if !e.stage.Optimistically(r.declared.keys, func(in *transact.Space) transact.Verdict {
		return c.judge(r.attempt(ctx, in, &r.scripts))
	}, c.next) {
		r.fail(reply.ErrScriptContended)
	}
}

// fail replies why nothing that the script has done is kept.
func (r *scriptRun) fail(err error) {
	w := resp.Writer{Buf: make([]byte, headBytes)}
	w.Error(reply.Text(err))
	r.reply, r.ended, r.left = w.Buf, true, inner{}
}

// runInExec runs the script as a part of a transaction, and takes back what it wrote if it was ended.
func (r *scriptRun) runInExec(ctx context.Context) {
	s := r.client
	r.declared.index()
	transact.OrUndo(s.space, func() (keep bool) {
		a := r.attempt(ctx, s.space, s.inner.scripts)
		s.inner.timedOut = s.inner.timedOut || a.timedOut
		return !a.ended
	})
}

// attempt runs the script. Its writes are to be kept unless it was ended: also when it failed, as in Redis.
func (r *scriptRun) attempt(ctx context.Context, in *transact.Space, scripts *lua.Allowance) attempted {
	s := r.client.child(ctx, inScript, in)
	s.inner.readOnly, s.inner.declared = r.readOnly || r.script.Flags.NoWrites, r.declared
	if s.inner.newKeys = &r.newKeys; r.client.inner != nil {
		s.inner.newKeys = r.client.inner.newKeys
	}
	s.borrow()
	defer s.giveBack()
	replied, err := s.engine.config.Scripts.RunWithin(ctx, scripts, r.script, r.keys, r.argv, scriptHost{s}, s.w.RESP3, make([]byte, headBytes))
	if err != nil {
		s.inner.counted = nil // as what it was counted for is taken back
	}
	r.reply, r.ended, r.left, r.wrote = replied, err != nil, *s.inner, s.wrote
	return attempted{ended: r.ended, timedOut: r.ended && scripts.Left() <= 0}
}

// finish replies on the session that waits.
func (r *scriptRun) finish(s *Session) error {
	switch {
	case r.problem != nil:
		return r.problem
	case r.reply == nil:
		return s.runScript([]byte(r.command.Name), r.script, r.keys, r.argv, r.readOnly)
	}
	failed := r.reply[headBytes] == '-'
	s.wrote = s.wrote || r.wrote
	s.takeOver(r.reply)
	if !failed {
		return nil
	}
	records := s.engine.config.Records
	records.Failed(r.command)
	text, _, _ := strings.Cut(string(r.reply[headBytes+1:]), "\r\n")
	if r.left.lastError == "" || !strings.HasPrefix(text, r.left.lastError) { // else it was counted when the command failed
		s.countError(held{command: r.command}, text)
	}
	return nil
}

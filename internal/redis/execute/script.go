package execute

import (
	"bytes"
	"context"
	"crypto/sha1"
	"strings"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

func ScriptHandlers() map[string]Handler {
	return map[string]Handler{
		"eval":        {Own: func(x *Executor, args [][]byte) error { return eval(x, args, false) }},
		"eval_ro":     {Own: func(x *Executor, args [][]byte) error { return eval(x, args, true) }},
		"evalsha":     {Own: func(x *Executor, args [][]byte) error { return evalSHA(x, args, false) }},
		"evalsha_ro":  {Own: func(x *Executor, args [][]byte) error { return evalSHA(x, args, true) }},
		"script|load": {Own: load},
	}
}

func eval(x *Executor, args [][]byte, readOnly bool) error {
	keys, argv, err := argument.Script(args)
	if err != nil {
		return err
	}
	var script *lua.Script
	if in, ok := x.Role.(*execRole); ok {
		script, err = in.scripts.Get(args[1])
	} else {
		script = x.Engine.Config.Scripts.Cached(args[1])
	}
	switch {
	case err != nil:
		return err
	case script != nil:
		return runScript(x, args[0], script, keys, argv, readOnly)
	}
	run := newRun(x, args[0], keys, argv, readOnly)
	run.source = bytes.Clone(args[1])
	return run.begin()
}

// load is SCRIPT LOAD. Compiling may take milliseconds, so it runs like a script.
func load(x *Executor, args [][]byte) error {
	scripts := x.Engine.Config.Scripts
	if script := scripts.Loaded(args[2]); script != nil {
		x.W.BulkString(script.SHA1)
		return nil
	}
	source := bytes.Clone(args[2])
	var script *lua.Script
	var problem error
	return x.Role.Background(x, x.Engine.Scripts, func(context.Context) { script, problem = scripts.Load(source) }, func(x *Executor) error {
		if problem != nil {
			return problem
		}
		x.W.BulkString(script.SHA1)
		return nil
	})
}

func evalSHA(x *Executor, args [][]byte, readOnly bool) error {
	if len(args[1]) != 2*sha1.Size { // Redis checks nothing else then
		return reply.ErrNoScript
	}
	keys, argv, err := argument.Script(args)
	if err != nil {
		return err
	}
	script := x.Engine.Config.Scripts.LookupAgain(x.Scratch.LastScript, args[1])
	if script == nil {
		return reply.ErrNoScript
	}
	x.Scratch.LastScript = script
	return runScript(x, args[0], script, keys, argv, readOnly)
}

// runScript runs a script: as the single call that it is, or else at once on the event loop, by its program
// or for a short time by the interpreter, or else in the background. In EXEC, all is in the background.
func runScript(x *Executor, name []byte, script *lua.Script, keys, argv [][]byte, readOnly bool) error {
	if err := mayRun(script, readOnly); err != nil {
		return err
	}
	if !x.Engine.Can.AtOnce && script.Native == nil {
		return reply.ErrOneCallScript
	}
	in, isStep := x.Role.(*execRole)
	if !readOnly && !script.Flags.NoWrites {
		// On a remote store, the interpreter only produces errors.
		native := !x.Engine.Can.AtOnce || !isStep && x.User.Unrestricted()
		if native && x.runNative(name, script, keys, argv) || !isStep && x.runProgram(script, keys, argv) {
			return nil
		}
	}
	switch {
	case isStep && in.time.Left() <= 0:
		in.timedOut = true
		return reply.ErrScriptsTooLong
	case !x.Engine.Transacts():
		return reply.ErrNoTransactions
	}
	run := newRun(x, name, keys, argv, readOnly)
	run.script = script
	if !isStep && x.Mode != InBackground && run.short() {
		return run.finish(x)
	}
	return run.begin()
}

func mayRun(script *lua.Script, readOnly bool) error {
	if readOnly && script.Flags.Shebang && !script.Flags.NoWrites {
		return reply.Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	return nil
}

// newRun returns a run without its script or source.
func newRun(x *Executor, name []byte, keys, argv [][]byte, readOnly bool) *scriptRun {
	return &scriptRun{
		client: x, command: x.Engine.Config.Catalog.Lookup(name), readOnly: readOnly,
		keys: Keep(keys), argv: Keep(argv),
	}
}

// begin starts the script in its turn.
func (r *scriptRun) begin() error {
	return r.client.Role.Background(r.client, r.client.Engine.Scripts, r.run, r.finish)
}

type scriptRun struct {
	client     *Executor        // waits for the outcome
	command    *catalog.Command // that runs the script
	script     *lua.Script
	source     []byte // if it must be compiled
	readOnly   bool
	keys, argv [][]byte
	bounds     Bounds

	scripts lua.Allowance // of all attempts, outside EXEC
	newKeys NewKeys       // of all attempts, outside EXEC

	problem error  // compilation error
	reply   []byte // nil if not run
	ended   bool   // by a bound
	wrote   bool
	left    *Kept // effects of the last attempt, and its error
	failure string
}

func (r *scriptRun) run(ctx context.Context) {
	if r.source != nil {
		e := r.client.Engine
		r.script, r.problem = e.Config.Scripts.Evaluate(r.source)
		if r.problem != nil || r.script.Native != nil || e.Stage.Txs == nil || mayRun(r.script, r.readOnly) != nil {
			return // as if it had been cached; finish does the rest
		}
	}
	r.bind()
	if in, ok := r.client.Role.(*execRole); ok {
		r.runInExec(ctx, in)
	} else {
		r.runOutsideExec(ctx)
	}
	r.settle()
}

// bind restricts the script to its keys.
func (r *scriptRun) bind() {
	r.bounds.Keys = make([]store.Key, len(r.keys))
	for i, name := range r.keys {
		r.bounds.Keys[i] = store.Key{DB: r.client.DB, Name: name}
	}
}

// settle counts the run and applies the effects of the last attempt.
func (r *scriptRun) settle() {
	outcome := observe.ScriptCompleted
	switch {
	case r.ended:
		outcome = observe.ScriptEnded
	case r.reply[0] == '-':
		outcome = observe.ScriptFailed
	}
	r.client.Engine.Config.Records.Script(outcome)
	r.left.Settle(r.client)
}

// Bounds of a run on an event loop.
const (
	shortTime = 200 * time.Microsecond // of others' waiting
	shortArgs = 200                    // with the keys
)

// short runs the script at once. It returns false, without effect, if that takes too long, or others change
// the keys: then it runs in the background, as a script does from then on that has taken too long.
func (r *scriptRun) short() (done bool) {
	e := r.client.Engine
	if e.Stage.Txs == nil || len(r.keys)+len(r.argv) > shortArgs || r.script.IsLong() {
		return false
	}
	r.bind()
	r.bounds.Index()
	scripts := lua.Allowance{Limit: shortTime, Held: true}
	kept := e.Stage.Optimistically(r.bounds.Keys, func(in *transact.Space) transact.Verdict {
		switch a := r.attempt(e.Context, in, &scripts); {
		case a.TimedOut:
			r.script.SetLong()
			return transact.Again
		case a.Ended:
			return transact.Drop
		}
		return transact.Keep
	}, func(int) transact.Mode { return transact.GiveUp })
	if !kept {
		r.reply, r.wrote = nil, false
		return false
	}
	r.settle()
	return true
}

func (r *scriptRun) runOutsideExec(ctx context.Context) {
	e := r.client.Engine
	if err := transact.CheckKeys(r.bounds.Keys); err != nil {
		r.fail(err)
		return
	}
	r.bounds.Index()
	r.scripts = e.Config.Scripts.Allowance()
	if !e.Can.AtOnce {
		r.attempt(ctx, &transact.Space{Keys: transact.NoKeys{}, NowNs: e.Config.Now()}, &r.scripts)
		return
	}
	c := contention{Context: ctx, Scripts: &r.scripts}
	if !e.Stage.Optimistically(r.bounds.Keys, func(in *transact.Space) transact.Verdict {
		return c.Judge(r.attempt(ctx, in, &r.scripts))
	}, c.Next) {
		r.fail(reply.ErrScriptContended)
	}
}

// fail replies why the script's changes are dropped.
func (r *scriptRun) fail(err error) {
	w := resp.Writer{}
	w.Error(reply.Text(err))
	r.reply, r.ended, r.left, r.failure = w.Buf, true, &Kept{}, ""
}

// runInExec runs the script within a transaction, and undoes its writes if it was ended.
func (r *scriptRun) runInExec(ctx context.Context, in *execRole) {
	r.bounds.Index()
	transact.OrUndo(r.client.Space, func() (keep bool) {
		a := r.attempt(ctx, r.client.Space, in.time)
		in.timedOut = in.timedOut || a.TimedOut
		return !a.Ended
	})
}

// attempt runs the script. Its writes stay even after an error, as in Redis, unless it was ended.
func (r *scriptRun) attempt(ctx context.Context, in *transact.Space, scripts *lua.Allowance) attempted {
	x, kept := r.client.Within(InScript, scriptRole{NestedRole{Context: ctx}}, in)
	r.bounds.ReadOnly = r.readOnly || r.script.Flags.NoWrites
	x.Bind(&r.bounds)
	if x.NewKeys == nil {
		x.NewKeys = &r.newKeys
	}
	x.BeginStep(r.client)
	defer x.EndStep()
	scriptEngine := x.Engine.Config.Scripts
	replied, err := scriptEngine.RunWithin(ctx, scripts, r.script, r.keys, r.argv, scriptHost{x}, x.W.RESP3, nil)
	if r.client.Mode == InExec {
		r.client.Endless = append(r.client.Endless, x.Endless...)
	} else if endless := x.CheckEndless(); err == nil && endless != nil {
		w := resp.Writer{}
		w.Error(reply.Text(endless))
		replied, err = w.Buf, endless
	}
	if err != nil {
		kept.Uncount() // it is undone
	}
	r.reply, r.ended, r.left, r.failure, r.wrote = replied, err != nil, kept, x.Scratch.LastError, x.Wrote
	return attempted{Ended: r.ended, TimedOut: r.ended && scripts.Left() <= 0}
}

// finish replies to the waiting client.
func (r *scriptRun) finish(x *Executor) error {
	switch {
	case r.problem != nil:
		return r.problem
	case r.reply == nil:
		return runScript(x, []byte(r.command.Name), r.script, r.keys, r.argv, r.readOnly)
	}
	failed := r.reply[0] == '-'
	x.Wrote = x.Wrote || r.wrote
	if !failed {
		Later(x).TakeOver(r.reply)
		return nil
	}
	x.W.Buf = append(x.W.Buf, r.reply...)
	records := x.Engine.Config.Records
	records.Failed(r.command)
	text, _, _ := strings.Cut(string(r.reply[1:]), "\r\n")
	if r.failure == "" || !strings.HasPrefix(text, r.failure) { // else the failed command was counted
		records.Errors.Count(observe.ErrorReply{Text: text, Command: r.command, By: x.Client})
	}
	return nil
}

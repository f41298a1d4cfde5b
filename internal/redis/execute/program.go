package execute

import (
	"bytes"
	"errors"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/lua"
	"cellserver/internal/lua/native"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// runProgram executes a script of a few commands without an interpreter, in a transaction that holds its
// keys. It returns false, without effect, where the interpreter is needed: for errors, missing permissions
// and everything unusual.
func (x *Executor) runProgram(script *lua.Script, keys, argv [][]byte) bool {
	e := x.Engine
	switch {
	case script.Program == nil || len(keys) == 0 || len(keys) > maxProgramKeys || !e.isShort(keys, argv):
		return false
	case x.Mode.holdsKeys() || x.Monitored || e.Stage.Txs == nil || e.Config.Gate.Interferes() || e.refusal() != nil:
		return false
	}
	if x.Scratch.program == nil {
		x.Scratch.program = newProgramRun(e)
	}
	return x.Scratch.program.run(x, script.Program, keys, argv)
}

// isShort reports whether keys are valid and arguments within the bound of programs.
func (e *Engine) isShort(keys, argv [][]byte) bool {
	size := 0
	for _, key := range keys {
		if size += len(key); len(key) > e.Config.MaxKeyBytes {
			return false
		}
	}
	for _, arg := range argv {
		size += len(arg)
	}
	return size <= maxProgramBytes
}

// Bounds of what is executed while others wait.
const (
	maxProgramKeys  = 8
	maxProgramBytes = 128 << 10 // of keys and arguments
)

// errProgram ends a run for which the interpreter is needed.
var errProgram = errors.New("execute: the script needs the interpreter")

// programRun runs programs.
type programRun struct {
	machine native.Machine
	inner   Executor // executes the commands
	kept    Kept
	space   transact.Space
	scripts int                // runs not counted yet
	called  []*catalog.Command // by those runs
	used    bool               // since forget

	program    *native.Program
	keys, argv [][]byte
	names      []store.Key // of the keys
	undeclared bool
	declare    func(name []byte) // sets undeclared
}

func newProgramRun(e *Engine) *programRun {
	r := &programRun{}
	r.inner = Executor{
		Engine: e, Scratch: e.newScratch(), Role: NestedRole{Context: e.Context}, Effects: &r.kept, Space: &r.space,
		Mode: InProgram,
	}
	r.kept.x = &r.inner
	r.declare = func(name []byte) {
		for _, key := range r.keys {
			if bytes.Equal(name, key) {
				return
			}
		}
		r.undeclared = true
	}
	return r
}

// run executes the program and appends its reply to the client's.
func (r *programRun) run(x *Executor, p *native.Program, keys, argv [][]byte) bool {
	nowNs := x.Scratch.beganNs
	if x.Scratch.beganNs = 0; nowNs == 0 {
		nowNs = x.Engine.Config.Now()
	}
	in := &r.inner
	if r.kept.any() { // of the last run
		r.kept = Kept{x: in}
	}
	in.User, in.Client, in.DB = x.User, x.Client, x.DB
	in.Wrote, in.Endless = false, in.Endless[:0]
	r.used, r.program, r.keys, r.argv, r.names = true, p, keys, argv, r.names[:0]
	for _, name := range keys {
		r.names = append(r.names, store.Key{DB: x.DB, Name: name})
	}
	counted := len(r.called)
	reply, ok := r.attempt(x, nowNs)
	if !ok {
		r.called = r.called[:counted]
		return false
	}
	x.W.Buf = reply
	x.Wrote = x.Wrote || in.Wrote
	if r.scripts++; len(r.called) > maxUncounted {
		r.count()
	}
	if r.kept.any() {
		r.kept.Settle(x)
	}
	return true
}

// attempt appends the program's reply to the client's.
func (r *programRun) attempt(x *Executor, nowNs int64) (reply []byte, ok bool) {
	tx := x.Engine.Stage.Txs.Begin(nowNs, r.names)
	defer tx.Rollback()
	if x.Scratch.limitsNewKeys && r.makesKey(tx, nowNs) {
		return nil, false
	}
	r.space = transact.Space{Keys: tx, NowNs: nowNs, Held: true}
	reply, ok = r.machine.Run(r.program, r.keys, r.argv, r, x.W.RESP3, x.W.Buf)
	return reply, ok && r.inner.CheckEndless() == nil && tx.Commit()
}

// makesKey reports whether the program may create a key.
func (r *programRun) makesKey(in store.Keys, nowNs int64) bool {
	return slices.ContainsFunc(r.names, func(key store.Key) bool {
		_, found, err := in.Entry(nowNs, key)
		return !found || err != nil
	})
}

// any reports whether the commands of programs have had effects.
func (k *Kept) any() bool { return len(k.looked) > 0 || k.looksAtAll || k.counted != nil }

// forget drops references to clients and their input.
func (r *programRun) forget() {
	if r == nil || !r.used {
		return
	}
	r.used = false
	r.count()
	r.machine.Forget()
	r.inner.User, r.inner.Client, r.space = nil, nil, transact.Space{}
	r.program, r.keys, r.argv = nil, nil, nil
	clear(r.names[:cap(r.names)])
}

// maxUncounted calls are counted together.
const maxUncounted = 256

// count counts what has run since it was last called.
func (r *programRun) count() {
	r.inner.Scratch.Local.Programs(r.scripts, r.called)
	r.scripts, r.called = 0, r.called[:0]
}

// Call implements native.Host.
func (r *programRun) Call(args [][]byte, buf []byte) (reply []byte, ok bool) {
	in := &r.inner
	c := in.Lookup(args[0])
	if !r.mayCall(c, args) {
		return buf, false
	}
	in.W = resp.Writer{Buf: buf}
	if c.Batches {
		ok = in.callBatched(c, args)
	} else {
		in.Wrote = in.Wrote || c.Flags&catalog.FlagWrite != 0
		ok = in.Engine.Handlers[c.ID].Plain(Call{in, r.space.NowNs}, args) == nil
	}
	r.called = append(r.called, c)
	return in.W.Buf, ok
}

// mayCall reports whether a command is admitted, and touches declared keys only.
func (r *programRun) mayCall(c *catalog.Command, args [][]byte) bool {
	in := &r.inner
	if c == nil || !in.Engine.inPrograms[c.ID] || !c.AcceptsArity(len(args)) || len(args) > c.Most() {
		return false
	}
	if c.Keys.First > 0 && !bytes.Equal(args[1], r.keys[0]) || c.Keys.Last != c.Keys.First {
		r.undeclared = false
		if c.Keys.Each(args, r.declare); r.undeclared {
			return false
		}
	}
	return in.User == nil || !c.Asks(in.User) || isAllowed(in.User, c, args)
}

// maxProgramSteps bounds a command of programs, as a shard is locked meanwhile: no DUMP, no INCRBYFLOAT.
const maxProgramSteps = 20_000

// isInPrograms reports whether programs call a command: it is short and uses nothing but its arguments, its
// keys and the time.
func isInPrograms(c *catalog.Command, h Handler) bool {
	const never = catalog.FlagNoScript | catalog.FlagNotWithKeys | catalog.FlagWhole | catalog.FlagScript |
		catalog.FlagPubSub
	switch {
	case c.Refusal != "" || c.Flags&never != 0 || c.Cost.Call > maxProgramSteps:
		return false
	case c.Batches:
		return c.Keys.First == 1 && c.Keys.Last == 1
	case h.Plain == nil:
		return false
	}
	return c.Name == "time" || c.Keys.First == 1 && (c.Group == "string" || c.Group == "generic")
}

// callBatched decides a single call of a batched command.
func (x *Executor) callBatched(c *catalog.Command, args [][]byte) (ok bool) {
	one := x.Scratch.batch[:1]
	defer x.Scratch.forget(one)
	read := x.Engine.requests[c.ID]
	if read(&one[0], x.DB, args, x.Engine.Config.Reading, &x.Scratch.names) != nil {
		return false
	}
	if one[0].Rule.Kind == limiter.Value {
		x.prepareValue(&one[0])
	}
	x.Engine.Decider.Uncounted(x.Space.Keys, x.Space.NowNs, one, &x.Scratch.Local)
	if one[0].Err != nil {
		return false
	}
	x.replyRequest(c, &one[0])
	x.countNamed(one)
	return true
}

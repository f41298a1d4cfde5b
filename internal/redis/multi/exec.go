package session

import (
	"context"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

func exec(s *Session, args [][]byte) error {
	switch {
	case s.multi == nil:
		return reply.Error("ERR EXEC without MULTI")
	case s.multi.Failed:
		s.discard()
		return reply.ErrExecFailed
	}
	x := s.newExecution(string(args[0]))
	if s.multi.Arguments() <= plannedArguments {
		x.makePlan()
		return s.beginExec(x)
	}
	makePlan := func(context.Context) { x.makePlan() }
	return s.inBackground(s.engine.background, makePlan, func(s *Session) error { return s.beginExec(x) })
}

// plannedArguments is how many a transaction may have whose plan is made where others wait for it.
const plannedArguments = 8000

// beginExec executes a transaction whose plan is made, or refuses it.
func (s *Session) beginExec(x *execution) error {
	if refused := x.plan.Refused(); refused != nil {
		s.multi.Failed = true
		s.discard()
		return reply.ExecAborted(reply.NotWithKeys(refused))
	}
	if whole := x.plan.Whole(); whole != nil && s.engine.remote != nil {
		s.discard()
		return reply.ExecAborted(reply.WholeInExec(whole))
	}
	s.multi = nil // what is executed is not queued
	if slots := x.slots(); slots != nil {
		return s.inBackground(slots, x.run, func(s *Session) error { return s.finishExec(x) })
	}
	x.run(context.Background())
	return s.finishExec(x)
}

// slots are those in which it is executed in the background; nil for at once.
func (x *execution) slots() *background.Slots {
	e := x.client.engine
	switch {
	case x.plan.Scripts && (e.remote == nil || x.compiles()):
		return e.scripts
	case x.plan.Long && !x.plan.Scripts: // it takes a processor
		return e.background
	case e.remote != nil && x.plan.Keys() != nil:
		return e.remote.slots
	case x.plan.Long:
		return e.background
	}
	return nil
}

// finishExec replies with what an execution left, and takes over what its commands made of the session.
func (s *Session) finishExec(x *execution) error {
	s.unwatch()
	s.client.Change(func(i *clients.Info) { i.Queued = -1 })
	s.client.Hold(clients.Queue, 0)
	switch {
	case x.err != nil:
		return reply.ExecAborted(x.err)
	case x.session == nil:
		s.w.NullArray()
		return nil
	}
	s.db, s.wrote = x.session.db, s.wrote || x.session.wrote
	s.w.Array(len(x.steps))
	s.takeOver(x.session.w.Buf)
	if x.session.replies != x.replies {
		s.replies = x.session.replies
	}
	if x.session.status == peer.Close {
		s.status = peer.Close
	}
	return nil
}

// execution is EXEC at work.
type execution struct {
	client   *Session // which waits
	steps    []transact.Step
	plan     *transact.Plan
	watch    store.Watch // nil without WATCH
	watched  []store.Key // by it
	replies  replyMode   // in the beginning
	name     string      // as the client spells it
	compiled compiledScripts
	scripts  lua.Allowance // what its scripts may take together
	newKeys  newKeys
	refused  []error  // by the user's rules, of the steps; nil if there are none
	session  *Session // what has executed the steps; nil if a watched key had changed
	err      error    // why nothing was executed
}

func (s *Session) newExecution(name string) *execution {
	x := &execution{client: s, steps: s.multi.Steps, replies: s.replies, name: name}
	if s.watched != nil {
		x.watch, x.watched = s.watched.Watch, s.watched.Keys
	}
	return x
}

// makePlan finds out what the steps need, perhaps while the session ends.
func (x *execution) makePlan() {
	config := &x.client.engine.config
	x.plan = transact.NewPlan(x.steps, x.client.db, config.Databases, x.watched)
	if x.plan.Scripts {
		x.scripts = config.Scripts.Allowance()
	}
}

// run executes the commands as one step, unless a watched key has changed. What they leave to be done behind that is done
// here, and not by finishExec, for it is a part of what they do also when their client has gone.
func (x *execution) run(ctx context.Context) {
	e := x.client.engine
	if x.plan.Scripts {
		x.compiled = x.client.compileSteps(x.steps)
	}
	x.checkAccess(ctx)
	x.err = x.carryOut(ctx)
	left, db := &inner{}, x.client.db
	if x.session != nil {
		left, db = x.session.inner, x.session.db
	}
	if x.client.monitored {
		line := observe.Line{NowNs: e.config.Now(), DB: db, Peer: &x.client.client.Peer, Args: [][]byte{[]byte(x.name)}}
		left.monitored = line.Append(left.monitored)
	}
	x.client.settle(left)
}

// carryOut makes all attempts. With an error nothing was executed.
func (x *execution) carryOut(ctx context.Context) error {
	if x.client.engine.remote != nil {
		return x.carryOutApart(ctx)
	}
	stage := x.client.engine.stage
	if !x.plan.OnSnapshots() {
		return x.hold(ctx, stage)
	}
	if err := x.plan.CheckKeys(); err != nil {
		return err
	}
	c := contention{ctx: ctx, steps: x.plan.Steps(stage), scripts: &x.scripts}
	if stage.Optimistically(x.plan.Keys(), func(in *transact.Space) transact.Verdict {
		return c.judge(x.execute(ctx, in))
	}, c.next) && (x.session != nil || ctx.Err() == nil) {
		return nil
	}
	x.session = nil
	if ctx.Err() != nil {
		return reply.ErrEnded
	}
	return reply.ErrKeysChanged
}

// carryOutApart is carryOut over a store on other machines, where nobody is kept from the keys.
func (x *execution) carryOutApart(ctx context.Context) (err error) {
	e := x.client.engine
	if x.plan.Keys() == nil {
		x.execute(ctx, &transact.Space{Keys: transact.NoKeys{}, NowNs: e.config.Now()})
		return nil
	}
	if err = x.plan.CheckKeys(); err == nil {
		err = e.remote.Transact(ctx, e.config.Now, x.plan.Keys(), func(in *transact.Space) transact.Verdict {
			if x.execute(ctx, in).ended {
				return transact.Drop
			}
			return transact.Keep
		})
	}
	if err == nil && x.session == nil {
		err = reply.ErrEnded
	}
	if x.plan.Batched() && e.remote.StandsIn(err) {
		x.execute(ctx, &transact.Space{Keys: e.remote.ByPolicy(err), NowNs: e.config.Now()})
		return nil
	}
	if err != nil {
		x.session = nil
	}
	return err
}

// leastScriptSteps are left to the scripts of a transaction that others wait for, or it is refused.
const leastScriptSteps = 1_000_000

func (x *execution) hold(ctx context.Context, stage transact.Stage) error {
	most := transact.MaxHeldSteps
	if x.plan.Scripts {
		holdScripts(&x.scripts, x.plan.Steps(stage))
		most -= leastScriptSteps
	}
	return x.plan.Hold(stage, most, func(in *transact.Space) transact.Verdict {
		x.execute(ctx, in)
		return transact.Keep
	})
}

// execute executes the steps, and reports what becomes of that. While others wait for it, all is executed, and so it is
// where it could not be undone, or a transaction could be cut in half.
func (x *execution) execute(ctx context.Context, in *transact.Space) attempted {
	x.session = nil
	// A session that has ended watches nothing any more, and has ended ctx before.
	if x.watch != nil && (x.watch.Dirty(in.NowNs) || ctx.Err() != nil) {
		return attempted{}
	}
	if in.Held || !x.plan.MayEnd() {
		ctx = context.WithoutCancel(ctx)
	}
	s := x.client.child(ctx, inExec, in)
	s.inner.compiled, s.inner.scripts, s.inner.newKeys = x.compiled, &x.scripts, &x.newKeys
	s.w.Buf = make([]byte, headBytes)
	s.borrow()
	defer s.giveBack()
	for i, q := range x.steps {
		if ctx.Err() != nil {
			return attempted{ended: true}
		}
		err := s.mayExecuteQueued(q)
		if err == nil && x.refused != nil {
			err = x.refused[i]
		}
		if err != nil {
			s.fail(held{command: q.Command, args: q.Args}, err)
			continue
		}
		s.run(held{command: q.Command, args: q.Args})
		s.flush()
	}
	x.session = s
	return attempted{timedOut: s.inner.timedOut}
}

// mayExecuteQueued refuses what EXEC must not do any more.
func (s *Session) mayExecuteQueued(q transact.Step) error {
	if err := s.mayUseStore(q.Command); err != nil {
		return err
	}
	if most := s.engine.config.MaxReplyBytes; len(s.w.Buf)-headBytes > most {
		return reply.TooLongReplies(most)
	}
	// Where SELECT was not allowed any more, the keys behind it are others than those that are held.
	if s.db != q.DB && (!q.Command.Keys.None() || q.Command.Flags&catalog.FlagWhole != 0) {
		return reply.ErrNotSelected
	}
	return nil
}

// checkAccess finds the steps that the user was allowed when they were queued, and is not any more. That is before the
// keys are held, as it compares each of them with each of the rules.
func (x *execution) checkAccess(ctx context.Context) {
	if x.client.user.Unrestricted() {
		return
	}
	s := x.client.child(ctx, inExec, &transact.Space{NowNs: x.client.engine.config.Now()})
	x.refused = make([]error, len(x.steps))
	for i, q := range x.steps {
		x.refused[i] = s.stillAllowed(q)
	}
}

// stillAllowed refuses what the user was allowed when it was queued, and is not any more.
func (s *Session) stillAllowed(q transact.Step) error {
	switch reason, _, _ := s.denied(q.Command, q.Args); reason {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return reply.ErrACLChanged + "no permission to execute the command or subcommand"
	default:
		return reply.ErrACLChanged + "no permission to touch the specified keys"
	}
}

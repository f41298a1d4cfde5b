// Package multi is EXEC: the commands behind MULTI are executed as one step, on snapshots of their keys or while others wait, in
// the background if that takes long.
package multi

import (
	"context"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/script"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Execution is EXEC at work.
type Execution struct {
	Steps []transact.Step
	Plan  *transact.Plan // after MakePlan

	Executor *execute.Executor // what has executed the steps; nil if a watched key had changed
	Err      error             // why nothing was executed
	Replies  execute.ReplyMode // in the beginning

	client  *execute.Executor // which waits
	watch   store.Watch       // nil without WATCH
	watched []store.Key       // by it
	name    string            // as the client spells it
	scripts script.Compiled
	time    lua.Allowance // what its scripts may take together
	newKeys execute.NewKeys
	refused []error // by the user's rules, of the steps; nil if there are none
	left    *execute.Kept
}

// New returns an Execution for a client. What is watched is nil without WATCH.
func New(client *execute.Executor, steps []transact.Step, watched *transact.Watched, name string) *Execution {
	x := &Execution{client: client, Replies: client.Replies, Steps: steps, name: name}
	if watched != nil {
		x.watch, x.watched = watched.Watch, watched.Keys
	}
	return x
}

// MakePlan finds out what the steps need, perhaps while the session ends.
func (x *Execution) MakePlan() {
	config := &x.client.Engine.Config
	x.Plan = transact.NewPlan(x.Steps, x.client.DB, config.Databases, x.watched)
	if x.Plan.Scripts {
		x.time = config.Scripts.Allowance()
	}
}

// Slots are those in which it is executed in the background; nil for at once.
func (x *Execution) Slots() *background.Slots {
	e := x.client.Engine
	switch {
	case x.Plan.Scripts && (e.Remote == nil || x.compiles()):
		return e.Scripts
	case x.Plan.Long && !x.Plan.Scripts: // it takes a processor
		return e.Background
	case e.Remote != nil && x.Plan.Keys() != nil:
		return e.Remote.Slots
	case x.Plan.Long:
		return e.Background
	}
	return nil
}

// compiles reports whether a script has to be compiled first, which takes a processor.
func (x *Execution) compiles() bool {
	return slices.ContainsFunc(x.Steps, func(q transact.Step) bool { return script.NeedsCompiling(x.client.Engine.Config.Scripts, q) })
}

// Run executes the commands as one step, unless a watched key has changed. What they leave to be done behind that is done
// here, and not by its client, for it is a part of what they do also when their client has gone.
func (x *Execution) Run(ctx context.Context) {
	e := x.client.Engine
	if x.Plan.Scripts {
		x.scripts = script.Compile(e, x.Steps)
	}
	x.checkAccess(ctx)
	x.Err = x.carryOut(ctx)
	left, db := &execute.Kept{}, x.client.DB
	if x.Executor != nil {
		left, db = x.left, x.Executor.DB
	}
	if x.client.Monitored {
		line := observe.Line{NowNs: e.Config.Now(), DB: db, Peer: &x.client.Client.Peer, Args: [][]byte{[]byte(x.name)}}
		left.Append(line.Append(nil))
	}
	left.Settle(x.client)
}

// carryOut makes all attempts. With an error nothing was executed.
func (x *Execution) carryOut(ctx context.Context) error {
	if x.client.Engine.Remote != nil {
		return x.carryOutApart(ctx)
	}
	stage := x.client.Engine.Stage
	if !x.Plan.OnSnapshots() {
		return x.hold(ctx, stage)
	}
	if err := x.Plan.CheckKeys(); err != nil {
		return err
	}
	c := script.Contention{Context: ctx, Steps: x.Plan.Steps(stage), Scripts: &x.time}
	if stage.Optimistically(x.Plan.Keys(), func(in *transact.Space) transact.Verdict {
		return c.Judge(x.execute(ctx, in))
	}, c.Next) && (x.Executor != nil || ctx.Err() == nil) {
		return nil
	}
	x.Executor = nil
	if ctx.Err() != nil {
		return reply.ErrEnded
	}
	return reply.ErrKeysChanged
}

// carryOutApart is carryOut over a store on other machines, where nobody is kept from the keys.
func (x *Execution) carryOutApart(ctx context.Context) (err error) {
	e := x.client.Engine
	if x.Plan.Keys() == nil {
		x.execute(ctx, &transact.Space{Keys: transact.NoKeys{}, NowNs: e.Config.Now()})
		return nil
	}
	if err = x.Plan.CheckKeys(); err == nil {
		err = e.Remote.Transact(ctx, e.Config.Now, x.Plan.Keys(), func(in *transact.Space) transact.Verdict {
			if x.execute(ctx, in).Ended {
				return transact.Drop
			}
			return transact.Keep
		})
	}
	if err == nil && x.Executor == nil {
		err = reply.ErrEnded
	}
	if x.Plan.Batched() && e.Remote.StandsIn(err) {
		x.execute(ctx, &transact.Space{Keys: e.Remote.ByPolicy(err), NowNs: e.Config.Now()})
		return nil
	}
	if err != nil {
		x.Executor = nil
	}
	return err
}

// leastScriptSteps are left to the scripts of a transaction that others wait for, or it is refused.
const leastScriptSteps = 1_000_000

func (x *Execution) hold(ctx context.Context, stage transact.Stage) error {
	most := transact.MaxHeldSteps
	if x.Plan.Scripts {
		script.Hold(&x.time, x.Plan.Steps(stage))
		most -= leastScriptSteps
	}
	return x.Plan.Hold(stage, most, func(in *transact.Space) transact.Verdict {
		x.execute(ctx, in)
		return transact.Keep
	})
}

// execute executes the steps, and reports what becomes of that. While others wait for it, all is executed, and so it is
// where it could not be undone, or a transaction could be cut in half.
func (x *Execution) execute(ctx context.Context, in *transact.Space) script.Attempted {
	x.Executor = nil
	// A session that has ended watches nothing any more, and has ended ctx before.
	if x.watch != nil && (x.watch.Dirty(in.NowNs) || ctx.Err() != nil) {
		return script.Attempted{}
	}
	if in.Held || !x.Plan.MayEnd() {
		ctx = context.WithoutCancel(ctx)
	}
	role := &role{Inner: execute.Inner{Context: ctx}, scripts: x.scripts, time: &x.time}
	s, left := x.client.Within(role, in)
	s.HoldsKeys, s.NewKeys = true, &x.newKeys
	s.W.Buf = make([]byte, execute.HeadBytes)
	s.Begin()
	defer s.End()
	for i, q := range x.Steps {
		if ctx.Err() != nil {
			return script.Attempted{Ended: true}
		}
		err := mayExecute(s, q)
		if err == nil && x.refused != nil {
			err = x.refused[i]
		}
		if err != nil {
			s.Fail(q.Command, q.Args, err)
			continue
		}
		s.Run(q.Command, q.Args)
		s.Flush()
	}
	x.Executor, x.left = s, left
	return script.Attempted{TimedOut: role.timedOut}
}

// role is EXEC's.
type role struct {
	execute.Inner
	scripts  script.Compiled
	time     *lua.Allowance // of its scripts
	timedOut bool
}

// Script implements script.Transaction.
func (r *role) Script(source []byte) (*lua.Script, error) { return r.scripts.Get(source) }

// Allowance implements script.Transaction.
func (r *role) Allowance() *lua.Allowance { return r.time }

// TimedOut implements script.Transaction.
func (r *role) TimedOut() { r.timedOut = true }

// mayExecute refuses what EXEC must not do any more.
func mayExecute(s *execute.Executor, q transact.Step) error {
	if err := s.Engine.MayUse(q.Command); err != nil {
		return err
	}
	if most := s.Engine.Config.MaxReplyBytes; len(s.W.Buf)-execute.HeadBytes > most {
		return reply.TooLongReplies(most)
	}
	// Where SELECT was not allowed any more, the keys behind it are others than those that are held.
	if s.DB != q.DB && (!q.Command.Keys.None() || q.Command.Flags&catalog.FlagWhole != 0) {
		return reply.ErrNotSelected
	}
	return nil
}

// checkAccess finds the steps that the user was allowed when they were queued, and is not any more. That is before the
// keys are held, as it compares each of them with each of the rules.
func (x *Execution) checkAccess(ctx context.Context) {
	if x.client.User.Unrestricted() {
		return
	}
	s, _ := x.client.Within(execute.Inner{Context: ctx}, &transact.Space{NowNs: x.client.Engine.Config.Now()})
	x.refused = make([]error, len(x.Steps))
	for i, q := range x.Steps {
		x.refused[i] = stillAllowed(s, q)
	}
}

// stillAllowed refuses what the user was allowed when it was queued, and is not any more.
func stillAllowed(s *execute.Executor, q transact.Step) error {
	switch reason, _, _ := s.Denied(q.Command, q.Args); reason {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return reply.ErrACLChanged + "no permission to execute the command or subcommand"
	default:
		return reply.ErrACLChanged + "no permission to touch the specified keys"
	}
}

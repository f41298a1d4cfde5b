package execute

import (
	"context"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Execution is a running EXEC.
type Execution struct {
	Name  string // of the command, as the client spelled it
	Steps []transact.Step
	Plan  *transact.Plan // after MakePlan

	Executor *Executor // nil if a watched key had changed
	Err      error     // set if nothing was executed
	Replies  ReplyMode // at the start
	Parts    Parts     // the reply

	client  *Executor   // waits for the outcome
	watch   store.Watch // nil without WATCH
	watched []store.Key // of watch
	scripts compiledScripts
	time    lua.Allowance // for all scripts together
	newKeys NewKeys
	refused []error // denials of steps; nil without any
	left    *Kept
	endless error // a value is left without an expiry, so nothing is executed
	onLoop  bool  // others wait for the attempt
	ending  execEnding
}

// execEnding is why an attempt has ended before its last command.
type execEnding uint8

const (
	notEnded  execEnding = iota
	isLong               // its reply, or what it copies, is long for an event loop
	isTooLong            // its reply is longer than --max-output-bytes, so nothing is executed
)

// NewExecution returns an Execution for a client. watched is nil without WATCH.
func NewExecution(client *Executor, steps []transact.Step, watched *transact.Watched, name string) *Execution {
	x := &Execution{client: client, Replies: client.Replies.Inside(), Steps: steps, Name: name}
	if watched != nil {
		x.watch, x.watched = watched.Watch, watched.Keys
	}
	return x
}

// MakePlan determines what the steps need. The session may be ending.
func (x *Execution) MakePlan() {
	config := &x.client.Engine.Config
	for i := range x.Steps {
		s := &x.Steps[i]
		s.Command.Keys.EachLimit(s.Args, func(name []byte) {
			if l := config.NamedLimits.Lookup(name); l != nil {
				s.Rules += l.ExactWindows() * catalog.SlidingSteps
			}
		})
	}
	x.Plan = transact.NewPlan(x.Steps, x.client.DB, config.Databases, x.watched)
	if x.Plan.Scripts {
		x.time = config.Scripts.Allowance()
	}
}

// Slots returns the background slots for the Execution, or nil to run it at once.
func (x *Execution) Slots() *background.Slots {
	e := x.client.Engine
	switch {
	case x.Plan.Scripts && (e.Can.AtOnce || x.compiles()):
		return e.Scripts
	case x.Plan.Long && !x.Plan.Scripts: // needs a processor
		return e.Background
	case !e.Can.AtOnce && x.Plan.Keys() != nil:
		return e.Remote.Slots
	case x.Plan.Long:
		return e.Background
	}
	return nil
}

// compiles reports whether a script must be compiled, which needs a processor.
func (x *Execution) compiles() bool {
	return slices.ContainsFunc(x.Steps, func(q transact.Step) bool { return needsCompiling(x.client.Engine.Config.Scripts, q) })
}

// Run executes the commands as one step, unless a watched key has changed. It also applies their effects,
// which are due even if the client has disconnected.
func (x *Execution) Run(ctx context.Context) {
	e := x.client.Engine
	if x.Plan.Scripts {
		x.scripts = compileScripts(e, x.Steps)
	}
	if x.refused == nil {
		x.checkAccess(ctx)
	}
	x.Err = x.carryOut(ctx)
	switch {
	case x.ending == isLong:
		return
	case x.ending == isTooLong:
		x.Err = reply.TooLongTransaction(e.Config.MaxReplyBytes)
	case x.Err == nil:
		x.Err = x.endless
	}
	left, db := &Kept{}, x.client.DB
	if x.Executor != nil {
		left, db = x.left, x.Executor.DB
	}
	if x.client.Monitored {
		line := observe.Line{NowNs: e.Config.Now(), DB: db, Peer: &x.client.Client.Peer, Args: [][]byte{[]byte(x.Name)}}
		left.Append(line.Append(nil))
	}
	left.Settle(x.client)
}

// RunShort is Run on an event loop. It returns false, without effect, if the reply is so long that others
// would wait: then Run does it in the background, on a snapshot.
func (x *Execution) RunShort() (done bool) {
	x.onLoop = true
	x.Run(context.Background())
	if x.onLoop = false; x.ending != isLong {
		return true
	}
	x.Plan.GoAside(x.watched)
	return false
}

// carryOut makes all attempts. On an error nothing was executed.
func (x *Execution) carryOut(ctx context.Context) error {
	if !x.client.Engine.Can.AtOnce {
		return x.carryOutRemote(ctx)
	}
	stage := x.client.Engine.Stage
	if !x.Plan.OnSnapshots() {
		return x.hold(ctx, stage)
	}
	if err := x.Plan.CheckKeys(); err != nil {
		return err
	}
	steps := x.Plan.Steps(stage)
	c := contention{Context: ctx, Steps: steps, Scripts: &x.time}
	if stage.Optimistically(x.Plan.Keys(), func(in *transact.Space) transact.Verdict {
		outcome := x.execute(ctx, in)
		c.Steps = steps + x.Parts.Bytes() // a byte of values takes about a nanosecond
		return c.Judge(outcome)
	}, c.Next) && (x.Executor != nil || ctx.Err() == nil) {
		return nil
	}
	x.Executor = nil
	if ctx.Err() != nil {
		return reply.ErrEnded
	}
	return reply.ErrKeysChanged
}

// carryOutRemote is carryOut on a remote store, which cannot hold keys.
func (x *Execution) carryOutRemote(ctx context.Context) (err error) {
	e := x.client.Engine
	if x.Plan.Keys() == nil {
		x.execute(ctx, &transact.Space{Keys: transact.NoKeys{}, NowNs: e.Config.Now()})
		return nil
	}
	if err = x.Plan.CheckKeys(); err == nil {
		err = e.Remote.Transact(ctx, transact.Part{Keys: x.Plan.Keys(), Alone: true, Do: func(in *transact.Space) transact.Verdict {
			if x.execute(ctx, in).Ended {
				return transact.Drop
			}
			return transact.Keep
		}})
	}
	if err == nil && x.Executor == nil {
		err = reply.ErrEnded
	}
	if x.Plan.Batched() && e.Remote.PolicyDecides(err) {
		x.execute(ctx, &transact.Space{Keys: e.Remote.ByPolicy(err), NowNs: e.Config.Now()})
		return nil
	}
	if err != nil {
		x.Executor = nil
	}
	return err
}

// leastScriptSteps remain for the scripts of a transaction that holds keys; otherwise it is refused.
const leastScriptSteps = 1_000_000

func (x *Execution) hold(ctx context.Context, stage transact.Stage) error {
	most := transact.MaxHeldSteps
	if x.Plan.Scripts {
		holdScripts(&x.time, x.Plan.Steps(stage))
		most -= leastScriptSteps
	}
	return x.Plan.Hold(stage, most, func(in *transact.Space) transact.Verdict {
		if x.execute(ctx, in).Ended {
			return transact.Drop
		}
		return transact.Keep
	})
}

// execute executes the steps and reports the outcome. It runs them all while others wait, and wherever an
// undo is impossible or would cut a transaction in half.
func (x *Execution) execute(ctx context.Context, in *transact.Space) attempted {
	x.Executor, x.ending = nil, notEnded
	x.Parts.Drop(x.client.Engine)
	// A session that has ended watches nothing, and its ctx is done.
	if x.watch != nil && (x.watch.Dirty(in.NowNs) || ctx.Err() != nil) {
		return attempted{}
	}
	if in.Held || !x.Plan.MayEnd() {
		ctx = context.WithoutCancel(ctx)
	}
	role := &execRole{NestedRole: NestedRole{Context: ctx}, scripts: x.scripts, time: &x.time, of: x}
	s, left := x.client.Within(InExec, role, in)
	s.NewKeys, s.Replies = &x.newKeys, x.Replies
	s.BeginStep(x.client)
	defer s.EndStep()
	undo := func() {}
	if keys, ok := in.Keys.(store.Restorer); ok && s.Engine.Config.RequireTTL {
		undo = keys.Save()
	}
	for i, q := range x.Steps {
		if ctx.Err() != nil {
			return attempted{Ended: true}
		}
		err := x.mayExecute(s, q)
		if err == nil && x.refused != nil {
			err = x.refused[i]
		}
		if err != nil {
			s.Fail(q.Command, q.Args, err)
			continue
		}
		s.Run(q.Command, q.Args)
		s.Flush()
		if x.Parts.Take(s); x.ends(s) {
			return attempted{Ended: true}
		}
	}
	x.Parts.End(s)
	x.Executor, x.left = s, left
	if x.endless = s.CheckEndless(); x.endless != nil {
		left.Uncount()
		undo()
	}
	return attempted{TimedOut: role.timedOut}
}

type execRole struct {
	NestedRole
	scripts  compiledScripts
	time     *lua.Allowance // of the scripts
	timedOut bool
	of       *Execution
}

// InTurns replies at once, but for a reply that is too long in any case.
func (r *execRole) InTurns(x *Executor, next Pieces) {
	for x.AppendPieces(next) > 0 && !r.of.ends(x) {
		r.of.Parts.Take(x)
	}
}

// mostCopiedBytes of states are copied on an event loop.
const mostCopiedBytes = 256 << 10

// ends reports whether an attempt has to end, as its reply is too long. It does so only if nothing remains of
// it.
func (x *Execution) ends(s *Executor) bool {
	if !x.Plan.MayEnd() || x.Plan.Keys() == nil || x.Plan.Whole() != nil {
		return false
	}
	switch full := x.Parts.Bytes(); {
	case full+len(s.W.Buf) > s.Engine.Config.MaxReplyBytes:
		x.ending = isTooLong
	case x.onLoop && (full > 0 || s.CopiedBytes > mostCopiedBytes):
		x.ending = isLong
	}
	return x.ending != notEnded
}

// mayExecute refuses steps that have become impossible.
func (x *Execution) mayExecute(s *Executor, q transact.Step) error {
	if err := s.Engine.MayUse(q.Command); err != nil {
		return err
	}
	if most := s.Engine.Config.MaxReplyBytes; x.Parts.Bytes()+len(s.W.Buf) > most {
		return reply.TooLongReplies(most)
	}
	// After a SELECT that is no longer allowed, the keys would not be those held.
	if s.DB != q.DB && (!q.Command.Keys.None() || q.Command.Flags&catalog.FlagWhole != 0) {
		return reply.ErrNotSelected
	}
	return nil
}

// checkAccess finds steps that were allowed when queued and no longer are. It runs before keys are held, as
// it compares every key with every rule.
func (x *Execution) checkAccess(ctx context.Context) {
	if x.client.User.Unrestricted() {
		return
	}
	s, _ := x.client.Within(InExec, NestedRole{Context: ctx}, &transact.Space{NowNs: x.client.Engine.Config.Now()})
	x.refused = make([]error, len(x.Steps))
	for i, q := range x.Steps {
		x.refused[i] = stillAllowed(s, q)
	}
}

// stillAllowed refuses a step that is no longer allowed.
func stillAllowed(s *Executor, q transact.Step) error {
	switch reason, _, _ := s.Denied(q.Command, q.Args); reason {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return reply.ErrACLChanged + "no permission to execute the command or subcommand"
	case acl.DeniedChannel:
		return reply.ErrACLChanged + "no permission to access one of the channels used as arguments"
	default:
		return reply.ErrACLChanged + "no permission to touch the specified keys"
	}
}

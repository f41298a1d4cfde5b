package execute

import (
	"cellserver/internal/base/often"
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/lua"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Executor executes commands with a user's rights on the keys of a Space. Its role may change the fields.
type Executor struct {
	// Fields of every command come first: with thousands of clients, each cache line is a memory access.
	Engine    *Engine
	Scratch   *Scratch // set between Begin and End
	User      *acl.User
	Space     *transact.Space
	Role      Role
	bounds    *Bounds     // nil outside scripts
	W         resp.Writer // takes the replies
	DB        uint16
	Mode      Mode
	Monitored bool // by any client
	Wrote     bool // a change that later replies report
	Forbidden catalog.Flag
	Status    peer.Status
	Replies   ReplyMode

	Asked   decide.Ask // by value, and takes the decisions instead of W; nil for a client of RESP
	Client  *clients.Client
	Effects Effects
	NewKeys *NewKeys // made in attempts of EXEC or a script; else nil
	// CopiedBytes is the size of the states that Call.State has returned.
	CopiedBytes int
	Endless     []store.Key // which CheckEndless checks

	scriptLines *often.Rate // lines logged so far; may be nil
}

// Mode is where commands are executed.
type Mode uint8

// Modes, from the outermost. From InExec on, others may wait for the keys; from InScript on, a script calls.
const (
	OnLoop       Mode = iota // a client's own, on its event loop
	InBackground             // a client's own, off the loops
	InExec                   // of a transaction
	InScript                 // of a script with an interpreter
	InProgram                // of one without; the interpreter repeats, and logs, its refusals
)

func (m Mode) holdsKeys() bool { return m >= InExec }

func (m Mode) byScript() bool { return m >= InScript }

// ReplyMode is the state of CLIENT REPLY.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	RepliesOn ReplyMode = iota
	RepliesOff
	RepliesSkipNext // suppresses one reply
	RepliesSkipping // that of the command under way, unless it turns replies on
)

// Inside returns the mode for the commands that a script or EXEC executes.
func (m ReplyMode) Inside() ReplyMode {
	if m == RepliesSkipping {
		return RepliesOn
	}
	return m
}

// Scratch is needed only during execution, so executors share it.
type Scratch struct {
	Turn
	Args  [][]byte
	Local observe.Local

	// the running command's, here to avoid allocations
	call      [8][]byte // of a script that is a single call
	operation limiter.Operation
	setting   store.Setting
	joint     Joint
	beganNs   int64 // of an unbatched command; 0 once it is used

	// the batch's, between Batch and Flush
	batch   []store.Request
	batchOf *catalog.Command
	names   argument.Names
	sink    limiter.Sink // texts that are read
	reading reading
	tally   limiter.Tally // of named limits

	// of earlier commands, most likely also for the next
	last       *catalog.Command
	lastName   []byte      // as spelled
	LastScript *lua.Script // of EVALSHA
	program    *programRun // nil before the first
}

// Turn is what has happened since the session's last turn.
type Turn struct {
	// NotesTold enables Told, for replies that may have to wait for the disk.
	NotesTold   bool
	Told        []Told
	WatchedKeys int    // and unwatched ones
	LastError   string // of a reply

	steps   int   // estimated cost in nanoseconds
	endedNs int64 // of the last command, if it was unbatched: a script that follows begins then
	// limitsNewKeys enables the check for new keys, which costs a lookup each.
	limitsNewKeys bool
}

// Told marks consecutive replies, by position, that report a change not yet on disk.
type Told struct{ From, To, Replies int }

const (
	// feedSteps, about two milliseconds of work in nanoseconds, ends a session's turn.
	feedSteps = 2_000_000

	maxBatch       = observe.MaxBatch
	maxScratchArgs = 64
	// maxScratchNameBytes bounds the retained buffer of joined names: a batch of short ones.
	maxScratchNameBytes = 128 * maxBatch
)

// NewClient initializes an Executor for a client's own commands on the store.
func (e *Engine) NewClient(x *Executor, role Role, client *clients.Client) {
	*x = Executor{Engine: e, Role: role, Client: client, Space: &e.Live}
	x.Effects = immediate{x}
}

// Within returns an Executor for the commands inside one of this Executor's, with its rights and database,
// own replies and effects.
func (x *Executor) Within(mode Mode, role Role, in *transact.Space) (*Executor, *Kept) {
	inner := &Executor{
		Engine:    x.Engine,
		User:      x.User,
		DB:        x.DB,
		Mode:      mode,
		W:         resp.Writer{RESP3: x.W.RESP3},
		Role:      role,
		Client:    x.Client,
		Monitored: x.Monitored,
		Space:     in,
		NewKeys:   x.NewKeys,
	}
	kept := &Kept{x: inner}
	inner.Effects = kept
	return inner, kept
}

// Authenticated reports whether somebody known gives the commands.
func (x *Executor) Authenticated() bool { return x.User != nil }

// Begin lends the Executor its Scratch.
func (x *Executor) Begin() {
	s := x.Engine.scratch.Get().(*Scratch)
	s.Turn = Turn{Told: s.Told[:0], limitsNewKeys: x.Engine.Config.NewKeys.Limited()}
	x.Scratch = s
}

// BeginStep is Begin for EXEC or a script, which is one step: all its calls, and those of scripts in it, are
// decided by the limits of one moment.
func (x *Executor) BeginStep(within *Executor) {
	x.Begin()
	if within.Mode == InExec {
		x.Scratch.names.Limits = within.Scratch.names.Limits
	} else { // it may have no Scratch
		x.renewLimits()
	}
}

// EndStep is End for BeginStep.
func (x *Executor) EndStep() {
	x.Scratch.names.Limits = nil
	x.End()
}

// Limits returns the named limits by which a call is decided. A handler asks once.
func (c Call) Limits() *namedlimit.Limits {
	if limits := c.x.Scratch.names.Limits; limits != nil {
		return limits
	}
	limits := c.x.Engine.Config.NamedLimits.Limits()
	return &limits
}

// RenewLimits has later calls of EXEC decided by the limits that one of its own has changed.
func (c Call) RenewLimits() { c.x.renewLimits() }

func (x *Executor) renewLimits() {
	limits := x.Engine.Config.NamedLimits.Limits()
	x.Scratch.names.Limits = &limits
}

// End clears references to the input, which would keep its buffer alive.
func (x *Executor) End() {
	s := x.Scratch
	clear(s.batch) // not empty after a panic
	s.batch = s.batch[:0]
	if cap(s.Args) > maxScratchArgs {
		s.Args = nil
	}
	clear(s.Args[:cap(s.Args)])
	if cap(s.names.Joined) > maxScratchNameBytes {
		s.names.Joined = nil
	}
	s.program.forget()
	x.Engine.scratch.Put(s)
	x.Scratch = nil
}

// Lookup is a Catalog.Lookup that tries the previous command first.
func (x *Executor) Lookup(name []byte) *catalog.Command {
	s := x.Scratch
	if s.last == nil || string(s.lastName) != string(name) {
		if s.last = x.Engine.Config.Catalog.Lookup(name); s.last != nil {
			s.lastName = append(s.lastName[:0], name...)
		}
	}
	return s.last
}

// Run executes an admitted command. It returns false, without effect, while an earlier batch is unanswered.
func (x *Executor) Run(c *catalog.Command, args [][]byte) (done bool) {
	if c.Batches {
		return x.Batch(c, args)
	}
	x.runUnbatched(c, args)
	return true
}

func (x *Executor) runUnbatched(c *catalog.Command, args [][]byte) {
	if x.Monitored {
		x.callMonitored(c, args)
	} else {
		x.call(c, args)
	}
}

// call executes an unbatched command.
func (x *Executor) call(c *catalog.Command, args [][]byte) {
	x.CallBy(x.Engine.Handlers[c.ID], c, args)
}

// CallBy executes an unbatched command by a handler.
func (x *Executor) CallBy(h Handler, c *catalog.Command, args [][]byte) {
	beganNs := x.Scratch.endedNs
	if beganNs == 0 || c.Flags&catalog.FlagScript == 0 {
		beganNs = x.Engine.Config.Now()
	}
	from, wrote := x.Replied(), x.Wrote
	x.Wrote = c.Flags&catalog.FlagWrite != 0
	x.Scratch.beganNs = beganNs
	err := x.Role.Run(x, c, h, beganNs, args)
	if x.Wrote && err == nil {
		x.Scratch.NoteTold(from, x.Replied())
	}
	x.Wrote = x.Wrote || wrote
	x.LookAfter(c)
	if !x.Role.Deferred(c, args, beganNs) {
		x.count(c, args, beganNs)
	}
	if err != nil {
		x.FailCommand(c, args, err)
	}
	if c.Long && x.Status == peer.NeedInput {
		x.Status = peer.More
	}
}

func (x *Executor) count(c *catalog.Command, args [][]byte, beganNs int64) {
	endedNs := x.Engine.Config.Now()
	ns := endedNs - beganNs
	x.Scratch.endedNs = endedNs
	if c.Batches { // a batch by itself, for those figures
		x.Scratch.Local.Batch(c, 1, ns)
	} else {
		x.Scratch.Local.Took(c, false, ns, ns)
	}
	if records := x.Engine.Config.Records; records.Slowness.IsSlow(ns) {
		records.SlowCall(c, x.Shown(c, args), x.Client, beganNs+ns, ns)
	}
	x.spend(max(int(ns), c.Cost.Call))
}

// spend adds to the session's cost, and ends its turn when others should have theirs.
func (x *Executor) spend(steps int) {
	if x.Scratch.steps += steps; x.Scratch.steps >= feedSteps && x.Status == peer.NeedInput {
		x.Status = peer.More
	}
}

// Reject counts a command that is not executed.
func (x *Executor) Reject(c *catalog.Command, args [][]byte) {
	if (c == nil || c.Refusal != "") && !catalog.IsProbe(args) {
		x.Engine.reportUnknown(x.Client, args)
	}
	if c != nil {
		x.Engine.Config.Records.Rejected(c)
	}
}

// FailCommand replies with an executed command's error.
func (x *Executor) FailCommand(c *catalog.Command, args [][]byte, err error) {
	x.Engine.Config.Records.Failed(c)
	x.Fail(c, args, reply.Of(c, err))
}

// Fail replies with an error of a call, possibly unknown. The batch before it is answered.
func (x *Executor) Fail(c *catalog.Command, args [][]byte, err error) {
	text := reply.Text(err)
	x.noteError(observe.ErrorReply{Text: text, Command: c, Args: args, By: x.Client})
	if x.Asked != nil {
		x.Asked.Fail(reply.Error(text))
		return
	}
	x.W.Error(text)
}

func (x *Executor) noteError(e observe.ErrorReply) {
	x.Engine.Config.Records.Errors.Count(e)
	x.Scratch.LastError = e.Text
}

// Replied returns the position after the replies, in bytes or decisions.
func (x *Executor) Replied() int {
	if x.Asked != nil {
		return x.Asked.Decided()
	}
	return len(x.W.Buf)
}

// NoteTold marks one reply, between two positions, as reporting a change.
func (s *Scratch) NoteTold(from, to int) {
	switch n := len(s.Told); {
	case !s.NotesTold || from == to:
	case n > 0 && s.Told[n-1].To == from:
		s.Told[n-1].To, s.Told[n-1].Replies = to, s.Told[n-1].Replies+1
	default:
		s.Told = append(s.Told, Told{from, to, 1})
	}
}

// Now returns the time for a command; in EXEC and scripts it stands still.
func (x *Executor) Now() int64 { return x.Role.Now(x) }

package execute

import (
	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Executor executes commands with a user's rights against the keys of a Space. Its fields are its role's to change.
type Executor struct {
	// What every command needs comes first: with thousands of clients each cache line is a wait for memory.
	Engine        *Engine
	Scratch       *Scratch // only between Begin and End
	User          *acl.User
	Space         *transact.Space
	Role          Role
	bounds        *Bounds // of a script; else nil
	W             resp.Writer
	DB            uint16
	Authenticated bool
	Monitored     bool // somebody is in MONITOR
	Wrote         bool // something has changed that the replies since tell of
	Valued        bool // requests are answered by Scratch.Answers, not by W
	Forbidden     catalog.Flag
	Status        peer.Status
	Replies       ReplyMode
	// RepliesRequested says that CLIENT REPLY ON was executed, since a command began whose reply is not wanted.
	RepliesRequested bool
	HoldsKeys        bool // others may wait for keys until EXEC or a script is done
	Away             bool // a client's command, in the background
	TellsItself      bool // the command that is called has shown itself to those in MONITOR
	byScript         bool

	Client  *clients.Client
	Effects Effects
	NewKeys *NewKeys // of EXEC's or a script's attempts; else nil

	scriptLines *often.Rate // that were logged; nil before the first
}

// ReplyMode is what CLIENT REPLY says.
type ReplyMode uint8

// The modes of CLIENT REPLY.
const (
	RepliesOn ReplyMode = iota
	RepliesOff
	RepliesSkipNext // the reply of the next command only
)

// Scratch is what an Executor needs only while it executes; all share them.
type Scratch struct {
	Args  [][]byte
	Local observe.Local
	// NotesTold says that replies may have to wait for the disk, and Told which of them tell of a change.
	NotesTold bool
	Told      []Told
	// WatchedKeys is how many keys were watched, or are no longer, since the session had its turn.
	WatchedKeys int

	// Answers are the replies where the Executor is Valued.
	Answers []reply.Answer

	call  [8][]byte // of a script that is one
	batch []store.Request
	// batchOf is the command whose calls are in the batch.
	batchOf *catalog.Command
	// steps is what the batches may have taken, beyond what any does, and the other commands have or may have, since the session had
	// its turn.
	steps     int
	operation limiter.Operation // the one that is done
	setting   store.Setting     // likewise
	joint     Joint             // likewise
	joined    []byte            // the names of the batch's keys that are no argument's
	// last is the command that was called last, as it was spelled: the next one is the same, most likely.
	last     *catalog.Command
	lastName []byte
	// limitsNewKeys says that a call may be refused for the key that it would make; a look at that for each would cost more.
	limitsNewKeys bool
	LastError     string // of a reply
}

// Told is replies in a row, by their places, each of which tells of a change that is not on the disk yet.
type Told struct{ From, To, Replies int }

const (
	// feedSteps is where a session stops so that others have their turn, in nanoseconds or so that its commands take: two
	// milliseconds.
	feedSteps = 2_000_000

	maxBatch       = observe.MaxBatch
	maxScratchArgs = 64
	// maxScratchNameBytes is how large the buffer of joined names is kept: for a batch of them that are not long.
	maxScratchNameBytes = 128 * maxBatch
)

// NewClient makes an Executor that of a client's own commands, on the store as it is.
func (e *Engine) NewClient(x *Executor, role Role, client *clients.Client) {
	*x = Executor{Engine: e, Role: role, Client: client, Space: &e.Live}
	x.Effects = atOnce{x}
}

// Within returns an Executor for what a command of this one executes: with its rights, in its database, and with replies and
// effects of its own, behind HeadBytes of room.
func (x *Executor) Within(role Role, in *transact.Space) (*Executor, *Kept) {
	inner := &Executor{
		Engine:        x.Engine,
		User:          x.User,
		Authenticated: x.Authenticated,
		DB:            x.DB,
		Replies:       x.Replies,
		W:             resp.Writer{RESP3: x.W.RESP3},
		Role:          role,
		Client:        x.Client,
		Monitored:     x.Monitored,
		Space:         in,
		NewKeys:       x.NewKeys,
	}
	kept := &Kept{x: inner}
	inner.Effects = kept
	return inner, kept
}

// Begin lends the Executor what it needs to execute.
func (x *Executor) Begin() {
	s := x.Engine.scratch.Get().(*Scratch)
	s.WatchedKeys, s.steps, s.LastError = 0, 0, ""
	s.limitsNewKeys = x.Engine.Config.NewKeys.Limited()
	s.NotesTold, s.Told = false, s.Told[:0]
	x.Scratch = s
}

// End leaves nothing in the scratch that refers to the input, whose buffer it would keep alive.
func (x *Executor) End() {
	s := x.Scratch
	clear(s.batch) // not empty after a panic
	s.batch, s.Answers = s.batch[:0], nil
	if cap(s.Args) > maxScratchArgs {
		s.Args = nil
	}
	clear(s.Args[:cap(s.Args)])
	if cap(s.joined) > maxScratchNameBytes {
		s.joined = nil
	}
	x.Engine.scratch.Put(s)
	x.Scratch = nil
}

// Lookup is Catalog.Lookup, which takes longer than a look at what was called last.
func (x *Executor) Lookup(name []byte) *catalog.Command {
	s := x.Scratch
	if s.last == nil || string(s.lastName) != string(name) {
		if s.last = x.Engine.Config.Catalog.Lookup(name); s.last != nil {
			s.lastName = append(s.lastName[:0], name...)
		}
	}
	return s.last
}

// Run executes a command that was admitted. It is false if a batch in front of it is still to be answered; then nothing was done.
func (x *Executor) Run(c *catalog.Command, args [][]byte) (done bool) {
	switch {
	case c.Batches:
		return x.Batch(c, args)
	case x.Monitored:
		x.callMonitored(c, args)
	default:
		x.call(c, args)
	}
	return true
}

// call executes a command that is not batched.
func (x *Executor) call(c *catalog.Command, args [][]byte) {
	beganNs := x.Engine.Config.Now()
	from, wrote := x.Replied(), x.Wrote
	x.Wrote = c.Flags&catalog.FlagWrite != 0
	err := x.Role.Run(x, c, x.Engine.Handlers[c.ID], beganNs, args)
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

// count counts a command that has run.
func (x *Executor) count(c *catalog.Command, args [][]byte, beganNs int64) {
	ns := x.Engine.Config.Now() - beganNs
	x.Scratch.Local.Took(c, false, ns, ns)
	x.Engine.Config.Records.Slow(c, args, x.Client, beganNs+ns, ns)
	x.spend(max(int(ns), c.Cost.Call))
}

// spend notes what was done, and has the session stop when that was long enough for others to have their turn.
func (x *Executor) spend(steps int) {
	if x.Scratch.steps += steps; x.Scratch.steps >= feedSteps && x.Status == peer.NeedInput {
		x.Status = peer.More
	}
}

// Reject counts a command that is not executed.
func (x *Executor) Reject(c *catalog.Command, args [][]byte) {
	if c == nil || c.Refusal != "" {
		x.Engine.reportUnknown(x.Client, args)
	}
	if c != nil {
		x.Engine.Config.Records.Rejected(c)
	}
}

// FailCommand replies an error of a command that was executed.
func (x *Executor) FailCommand(c *catalog.Command, args [][]byte, err error) {
	x.Engine.Config.Records.Failed(c)
	x.Fail(c, args, err)
}

// Fail replies an error to a call, of which less may be known. The batch in front of it has been answered.
func (x *Executor) Fail(c *catalog.Command, args [][]byte, err error) {
	text := reply.Text(err)
	x.Engine.Config.Records.Errors.Count(observe.ErrorReply{Text: text, Command: c, Args: args, By: x.Client})
	x.Scratch.LastError = text
	if x.Valued {
		x.Scratch.Answers = append(x.Scratch.Answers, reply.Answer{Error: text})
		return
	}
	x.W.Error(text)
}

// Replied is the place behind the replies, in bytes or in answers.
func (x *Executor) Replied() int { return len(x.W.Buf) + len(x.Scratch.Answers) }

// NoteTold notes that what was replied between two places is one reply, and tells of a change.
func (s *Scratch) NoteTold(from, to int) {
	switch n := len(s.Told); {
	case !s.NotesTold || from == to:
	case n > 0 && s.Told[n-1].To == from:
		s.Told[n-1].To, s.Told[n-1].Replies = to, s.Told[n-1].Replies+1
	default:
		s.Told = append(s.Told, Told{from, to, 1})
	}
}

// Now is the time that a command sees; in EXEC and in scripts it stands still.
func (x *Executor) Now() int64 { return x.Role.Now(x) }

const (
	// HeadBytes is left in front of what EXEC or a script replies for what a reply begins with.
	HeadBytes = 64
	// copiedBytes is how much an event loop copies of replies that it could have as they are.
	copiedBytes = 64 << 10
)

// TakeOver appends what EXEC or a script has replied behind HeadBytes of room.
func TakeOver(w *resp.Writer, replies []byte) {
	if head := len(w.Buf); head <= HeadBytes && len(replies) > copiedBytes {
		whole := replies[HeadBytes-head:]
		copy(whole, w.Buf)
		w.Buf = whole
		return
	}
	w.Buf = append(w.Buf, replies[HeadBytes:]...)
}

package execute

import (
	"context"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Role is the context in which an Executor executes: it sets the time of commands and the fate of unfinished
// ones.
type Role interface {
	// Words returns the refusals' wording.
	Words() Words
	// Now returns the time for commands.
	Now(x *Executor) int64
	// Run runs a command's handler.
	Run(x *Executor, c *catalog.Command, h Handler, beganNs int64, args [][]byte) error
	// Deferred reports whether a command is unfinished. It is counted at its end.
	Deferred(c *catalog.Command, args [][]byte, beganNs int64) bool
	// Decide decides a batch, and returns the store's pending answers, or nil.
	Decide(x *Executor, c *catalog.Command, batch []store.Request) *decide.Later
	// Await calls answered on the store's answers.
	Await(later *decide.Later, answered Answered)
	// Together decides requests in one step, possibly in several attempts.
	Together(x *Executor, j *Joint) error
	// Turn applies an operation Wait and replies its Result in turn.
	Turn(c Call, name []byte, o *limiter.Operation) error
	// Background runs work off the event loops in one of the slots; then finish replies.
	Background(x *Executor, slots *background.Slots, work func(context.Context), finish Finish) error
	// InTurns replies in pieces, in several turns of a client.
	InTurns(x *Executor, next Pieces)
	// Replies reports whether pieces of a reply are still to come.
	Replies() bool
	// After calls finish after a delay.
	After(d time.Duration, finish Finish) error
	Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c Call) error) error
}

type (
	// Finish replies to a finished command.
	Finish func(x *Executor) error
	// Answered replies to answered requests.
	Answered func(x *Executor, batch []store.Request) error
)

// Words is the wording of refusals.
type Words interface {
	Unknown(t *catalog.Catalog, args [][]byte) error
	UnknownSubcommand(c *catalog.Command, name []byte) error
	// Arity words a wrong number of arguments. It may return nil for a command that is refused anyway.
	Arity(c *catalog.Command, count int) error
	// Forbidden words Forbidden flags.
	Forbidden(by catalog.Flag) error
	// Denied words a denial by the user's rules.
	Denied(reason acl.Reason, object string) string
	// Context names the call's place for ACL LOG.
	Context() string
}

// ClientWords words refusals of a client's own commands; its text is their Context.
type ClientWords string

func (ClientWords) Unknown(t *catalog.Catalog, args [][]byte) error {
	return reply.UnknownCommand(args, t.Meant(args[0]))
}

func (ClientWords) UnknownSubcommand(c *catalog.Command, name []byte) error {
	return reply.UnknownSubcommand(c, name)
}

func (ClientWords) Arity(c *catalog.Command, count int) error {
	switch {
	case count > c.Most() && c.Refusal == "":
		return reply.TooManyArguments(c)
	case !c.AcceptsArity(count):
		return reply.Arity(c)
	}
	return nil
}

func (ClientWords) Forbidden(by catalog.Flag) error {
	if by&cachedFlags != 0 {
		return reply.ErrNotCached
	}
	return reply.ErrNotInMulti
}

func (ClientWords) Denied(reason acl.Reason, object string) string {
	switch reason {
	case acl.DeniedCommand:
		return "NOPERM this user has no permissions to run the '" + object + "' command"
	case acl.DeniedChannel:
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	default:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	}
}

func (p ClientWords) Context() string { return string(p) }

// NestedRole is the common part of roles within a client's command: time stands still, nothing is deferred,
// and everything that would make others wait is refused.
type NestedRole struct {
	Context context.Context // ends with the client
}

func (NestedRole) Words() Words { return ClientWords("multi") }

func (NestedRole) Now(x *Executor) int64 { return x.Space.NowNs }

func (NestedRole) Run(x *Executor, _ *catalog.Command, h Handler, _ int64, args [][]byte) error {
	return h.Run(x, x.Space.NowNs, args)
}

func (NestedRole) Deferred(*catalog.Command, [][]byte, int64) bool { return false }

func (NestedRole) Decide(x *Executor, c *catalog.Command, batch []store.Request) *decide.Later {
	x.Engine.Decider.BatchIn(x.Space.Keys, x.Space.NowNs, batch, x.By(c))
	return nil
}

// Await has nothing to do: Decide answers at once.
func (NestedRole) Await(*decide.Later, Answered) {}

func (NestedRole) Together(x *Executor, j *Joint) error {
	transact.OrUndo(x.Space, func() (keep bool) { return j.Decide(x.Space) == transact.Keep })
	return nil
}

// Turn never waits.
func (NestedRole) Turn(c Call, name []byte, o *limiter.Operation) error {
	o.TTLNs = 0
	if err := c.Operate(name, o); err != nil {
		return err
	}
	Result(c.Reply(), &o.Result)
	return nil
}

// Background runs work at once, as it is in the background already.
func (r NestedRole) Background(x *Executor, _ *background.Slots, work func(context.Context), finish Finish) error {
	work(r.Context)
	return finish(x)
}

// InTurns replies at once, into memory.
func (NestedRole) InTurns(x *Executor, next Pieces) {
	for held := 1; held > 0; {
		held = next(x)
	}
}

func (NestedRole) Replies() bool { return false }

func (NestedRole) After(time.Duration, Finish) error { return reply.ErrNotInMulti }

func (NestedRole) Until(func(context.Context, func()), time.Duration, func(Call) error) error {
	return reply.ErrNotInMulti
}

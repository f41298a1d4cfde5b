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

// Role is for whom an Executor executes: what a command's time is, and what becomes of a command that is not done at once.
type Role interface {
	// Words are those of its refusals.
	Words() Words
	// Now is the time that commands see.
	Now(x *Executor) int64
	// Run has a command's handler run.
	Run(x *Executor, c *catalog.Command, h Handler, beganNs int64, args [][]byte) error
	// Deferred reports whether a command that was run is not done. Then it is counted when it is.
	Deferred(c *catalog.Command, args [][]byte, beganNs int64) bool
	// Decide has a batch decided, and returns what its store answers later; nil if it is answered.
	Decide(x *Executor, c *catalog.Command, batch []store.Request) *decide.Later
	// Await has answered reply to what the store answers later.
	Await(later *decide.Later, answered Answered)
	// Together has requests decided as one step, perhaps in several attempts.
	Together(x *Executor, j *Joint) error
	// Turn does an operation Wait, and replies its Result when its turn has come.
	Turn(c Call, name []byte, o *limiter.Operation) error
	// Background has work done where nobody waits for it but the client, in its turn for one of the slots; then finish replies.
	Background(x *Executor, slots *background.Slots, work func(context.Context), finish Finish) error
	// After has finish reply when a time has passed.
	After(d time.Duration, finish Finish) error
	// Until is Call.Until.
	Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c Call) error) error
}

type (
	// Finish replies to a command that is done.
	Finish func(x *Executor) error
	// Answered replies to requests that are answered.
	Answered func(x *Executor, batch []store.Request) error
)

// Words is how it is said that a command must not be executed.
type Words interface {
	Unknown(args [][]byte) error
	UnknownSubcommand(c *catalog.Command, name []byte) error
	// Arity is of a number of arguments that is too small or too large. It may be nil for a command that is refused anyway.
	Arity(c *catalog.Command, count int) error
	// Forbidden is of one of the Executor's Forbidden flags.
	Forbidden() error
	// Denied is of the user's rules.
	Denied(reason acl.Reason, object string) string
	// Context is where the call stands, for ACL LOG.
	Context() string
}

// PlainWords are those of a client's own commands; it is where they stand.
type PlainWords string

// Unknown implements Words.
func (PlainWords) Unknown(args [][]byte) error { return reply.UnknownCommand(args) }

// UnknownSubcommand implements Words.
func (PlainWords) UnknownSubcommand(c *catalog.Command, name []byte) error {
	return reply.UnknownSubcommand(c, name)
}

// Arity implements Words.
func (PlainWords) Arity(c *catalog.Command, count int) error {
	switch {
	case count > c.Most() && c.Refusal == "":
		return reply.TooManyArguments(c)
	case !c.AcceptsArity(count):
		return reply.Arity(c)
	}
	return nil
}

// Forbidden implements Words.
func (PlainWords) Forbidden() error { return reply.ErrNotInMulti }

// Denied implements Words.
func (PlainWords) Denied(reason acl.Reason, object string) string {
	if reason == acl.DeniedCommand {
		return "NOPERM this user has no permissions to run the '" + object + "' command"
	}
	return "NOPERM this user has no permissions to access one of the keys used as arguments"
}

// Context implements Words.
func (p PlainWords) Context() string { return string(p) }

// Inner is what the roles have in common that execute within a command of a client: time stands still, nothing is done later,
// and what would make others wait is refused.
type Inner struct {
	Context context.Context // ends when the client is gone
}

// Words implements Role.
func (Inner) Words() Words { return PlainWords("multi") }

// Now implements Role.
func (Inner) Now(x *Executor) int64 { return x.Space.NowNs }

// Run implements Role.
func (Inner) Run(x *Executor, _ *catalog.Command, h Handler, _ int64, args [][]byte) error {
	return h.Run(x, x.Space.NowNs, args)
}

// Deferred implements Role.
func (Inner) Deferred(*catalog.Command, [][]byte, int64) bool { return false }

// Decide implements Role.
func (Inner) Decide(x *Executor, c *catalog.Command, batch []store.Request) *decide.Later {
	x.Engine.Decider.BatchIn(x.Space.Keys, x.Space.NowNs, batch, x.By(c))
	return nil
}

// Await implements Role. Decide answers at once.
func (Inner) Await(*decide.Later, Answered) {}

// Together implements Role.
func (Inner) Together(x *Executor, j *Joint) error {
	transact.OrUndo(x.Space, func() (keep bool) { return j.Decide(x.Space) == transact.Keep })
	return nil
}

// Turn implements Role. It does not wait, as if the operation had no time.
func (Inner) Turn(c Call, name []byte, o *limiter.Operation) error {
	o.TTLNs = 0
	if err := c.Operate(name, o); err != nil {
		return err
	}
	Result(c.Reply(), &o.Result)
	return nil
}

// Background implements Role. It is in the background already.
func (r Inner) Background(x *Executor, _ *background.Slots, work func(context.Context), finish Finish) error {
	work(r.Context)
	return finish(x)
}

// After implements Role.
func (Inner) After(time.Duration, Finish) error { return reply.ErrNotInMulti }

// Until implements Role.
func (Inner) Until(func(context.Context, func()), time.Duration, func(Call) error) error {
	return reply.ErrNotInMulti
}

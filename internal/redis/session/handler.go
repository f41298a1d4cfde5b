package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Handler executes a command. It is one of Plain, Whole and OnConnection, by what the command needs.
type Handler struct {
	plain      func(c Call, args [][]byte) error
	whole      func(c Call, all store.Walker, args [][]byte) error
	connection func(c Call, conn Connection, args [][]byte) error
	own        func(s *Session, args [][]byte) error // the package's own, which are about the session itself
}

// Plain is the handler of a command that needs a Call.
func Plain(f func(c Call, args [][]byte) error) Handler { return Handler{plain: f} }

// Whole is the handler of a command about all keys, which is flagged catalog.FlagWhole.
func Whole(f func(c Call, all store.Walker, args [][]byte) error) Handler { return Handler{whole: f} }

// OnConnection is the handler of a command about the client's connection.
func OnConnection(f func(c Call, conn Connection, args [][]byte) error) Handler {
	return Handler{connection: f}
}

// fits reports whether the handler can execute the command.
func (h Handler) fits(c *catalog.Command) error {
	switch {
	case c.Refusal != "" || c.Batches || c.Subs != nil && !c.AcceptsArity(1):
		return nil // nothing executes it, but its subcommands and the batches
	case h.plain == nil && h.whole == nil && h.connection == nil && h.own == nil:
		return errors.New("it has no handler")
	case (h.whole != nil) != (c.Flags&catalog.FlagWhole != 0):
		return errors.New("its handler is for all keys and its flags are not, or the other way round")
	case h.connection != nil && c.Most() > resp.LongArgs:
		return errors.New("calls with many arguments are executed apart from the connection, " +
			"which its handler is about")
	}
	return nil
}

// run executes a command at the time that it sees.
func (h Handler) run(s *Session, nowNs int64, args [][]byte) error {
	c := Call{s, nowNs}
	switch {
	case h.plain != nil:
		return h.plain(c, args)
	case h.whole != nil:
		if s.space.All == nil {
			return reply.ErrNoWalk
		}
		return h.whole(c, s.space.All, args)
	case h.connection != nil:
		return h.connection(c, Connection{s}, args)
	}
	return h.own(s, args)
}

// Call is a command that is executed, for its handler: the reply, the keys, the time, and what is done later. It is the
// same in EXEC and in scripts, and is valid until the command is done.
type Call struct {
	s     *Session
	nowNs int64 // 0 for what is asked later
}

// Reply is what the client is sent.
func (c Call) Reply() *resp.Writer { return &c.s.w }

// DB is the number of the database that the client has selected.
func (c Call) DB() uint16 { return c.s.db }

// Key names a key of the client's database. The name is a slice of the driver's buffer, as the arguments are.
func (c Call) Key(name []byte) store.Key { return store.Key{DB: c.s.db, Name: name} }

// Entry returns of what kind a key is and when it expires, and false if the key is absent.
func (c Call) Entry(name []byte) (e store.Entry, ok bool, err error) {
	return storeResult(c.s.space.Keys.Entry(c.Now(), c.Key(name)))
}

// State returns a key's state, and false if the key is absent.
func (c Call) State(name []byte) (state limiter.State, ok bool, err error) {
	return storeResult(c.s.space.Keys.State(c.Now(), c.Key(name)))
}

// TAT returns the time at which a funnel will be empty, in Unix nanoseconds, and false if the key is absent.
func (c Call) TAT(name []byte) (tatNs int64, ok bool, err error) {
	o := limiter.Operation{Verb: limiter.Look}
	if err = c.s.space.Keys.Apply(c.Now(), c.Key(name), &o); err != nil {
		return 0, false, reply.StoreFailed(err)
	}
	return o.AtNs, o.Count == 1, nil
}

func storeResult[R any](result R, ok bool, err error) (R, bool, error) {
	if err != nil {
		err = reply.StoreFailed(err)
	}
	return result, ok, err
}

// Apply does a step to a key's state, which has its answers then. It fails where that would make a key that
// has no room, or one more than the client's address may make.
func (c Call) Apply(name []byte, step store.Step) error {
	key := c.Key(name)
	if err := c.s.mayApply(&key, step); err != nil {
		return err
	}
	if err := c.s.engine.decider.Apply(c.s.space.Keys, c.Now(), key, step, &c.s.scratch.local); err != nil {
		return reply.StoreFailed(err)
	}
	c.s.lookAt(key)
	return nil
}

// Operate applies an operation, and sets the answers in o.
func (c Call) Operate(name []byte, o *limiter.Operation) error {
	shared := &c.s.scratch.operation // or each would be left to the collector
	*shared = *o
	err := c.Apply(name, shared)
	*o = *shared
	return err
}

// Delete removes keys as one step and returns how many there were.
func (c Call) Delete(keys []store.Key) (deleted int, err error) {
	if deleted, err = c.s.space.Keys.Delete(c.Now(), keys); err != nil {
		return deleted, reply.StoreFailed(err)
	}
	for _, key := range keys {
		c.s.lookAt(key)
	}
	return deleted, nil
}

// SetState applies a store.Setting, and returns what State would have returned before.
func (c Call) SetState(name []byte, s limiter.State, when store.Condition) (before limiter.State, found bool, err error) {
	shared := &c.s.scratch.setting
	*shared = store.Setting{To: s, When: when}
	err = c.Apply(name, shared)
	before, found = shared.Before, shared.Found
	*shared = store.Setting{} // or the payloads would be kept alive
	return before, found, err
}

// Now is the time in Unix nanoseconds: one for a handler, and one for all of EXEC or of a script.
func (c Call) Now() int64 {
	if c.nowNs == 0 {
		return c.s.now()
	}
	return c.nowNs
}

// WallTime is the time of the system's clock; in EXEC and in scripts it is Now.
func (c Call) WallTime() time.Time {
	if c.s.role.holdsTime() {
		return time.Unix(0, c.s.space.NowNs)
	}
	return c.s.engine.config.WallTime()
}

// Keep returns arguments as they may be kept for work in the background: copied, if they are the driver's.
func (c Call) Keep(args [][]byte) [][]byte {
	if c.s.inner != nil {
		return args
	}
	return keep(args)
}

// Background has work done on a goroutine of its own, for it may take long; done replies when it has ended.
// The arguments are work's only as Keep returns them. ctx ends when the client is gone or the server ends,
// and then the reply is an error. In EXEC and in scripts all is done at once, for they run in the background
// already.
func (c Call) Background(work func(ctx context.Context, nowNs int64), done func(c Call) error) error {
	var ended error
	return c.s.inBackground(c.s.engine.background, func(ctx context.Context) {
		work(ctx, c.s.now())
		ended = ctx.Err()
	}, func(s *Session) error {
		if ended != nil {
			return reply.ErrEnded
		}
		return done(Call{s: s})
	})
}

// HoldsKeys reports whether others may wait for keys until the command is done, as it is a part of EXEC or of a script.
func (c Call) HoldsKeys() bool { return c.s.role.holdsTime() }

// IsAway reports whether this is not an event loop, as the store is on other machines, and each call of it a
// round trip, or as the command has many arguments.
func (c Call) IsAway() bool { return c.s.role == away }

// After replies when a time has passed, unless the client has gone. EXEC and scripts refuse it: others would wait.
func (c Call) After(d time.Duration, done func(c Call) error) error {
	return c.s.after(d, func(s *Session) error { return done(Call{s: s}) })
}

// Until replies when what begin has begun calls finish, which it may do from any goroutine, or when a time other than 0 has
// passed. A client that sends no more is replied to, too. ctx ends when nobody waits for finish any more; where the server
// ends, the reply is an error. EXEC and scripts refuse it: others would wait.
func (c Call) Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c Call) error) error {
	if c.s.inner != nil {
		return reply.ErrNotInMulti
	}
	var ended atomic.Bool
	p := c.s.waitForTask(func(s *Session) error {
		s.pending.workNs = 0 // nothing was done for the client
		if ended.Load() {
			return reply.ErrEnded
		}
		return done(Call{s: s})
	})
	p.stays = true
	if atMost > 0 {
		p.After(atMost)
	}
	server := c.s.engine.ctx
	context.AfterFunc(p.Context(), func() {
		ended.Store(server.Err() != nil)
		p.Finish()
	})
	begin(p.Context(), p.Finish)
	return nil
}
